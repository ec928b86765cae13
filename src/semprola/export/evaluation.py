"""A plan as operations that every runtime has: gathers, sums and maxima of tensors, none of them in place."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from semprola.engine import Plan
from semprola.engine.plan import Step


class PlainPlan(nn.Module):
    """The upward and the downward pass over a plan.

    Values are tables [rows, columns] with a row of zeros in front; shorter lists are padded with its index.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        steps = plan.on(torch.device("cpu"))
        self.num_leaves, self.num_fixed, self.num_weights = plan.num_leaves, plan.num_fixed, plan.num_weights
        self.steps = [(step.sums, step.fan_in, step.edges.start) for step in steps.steps]
        position = torch.zeros(plan.num_edges + 1, dtype=torch.int64)
        """Row of each edge in the table of flows, in which the last step comes first."""
        free = 1
        for step in reversed(steps.steps):
            size = step.sums * step.fan_in
            position[step.edges] = torch.arange(free, free + size)
            free += size
        for i, step in enumerate(steps.steps):
            self._keep(f"factors_{i}", _padded(step.factors + 1, step.offsets, step.sums * step.fan_in))
            parents = _padded(position[step.parents], step.parent_offsets, step.sums)
            self._keep(f"parents_{i}", parents)
            self._keep(f"root_{i}", _is_root(plan, step))
        leaf_parents = _padded(position[steps.leaf_parents], steps.leaf_offsets, plan.num_leaves)
        self._keep("leaf_parents", leaf_parents)
        by_weight = position[plan.num_fixed : plan.num_edges]
        self._keep("weight_flows", by_weight)

    def upward(self, weights: Tensor | None, leaves: Tensor, maximize: bool) -> tuple[Tensor, list[Tensor]]:
        """The root's log-value [columns], and each step's shares [sums, fan_in, columns].

        Args:
            weights: log-weights [W, columns], or None for weights of one.
            leaves: log-values of the literals [2 variables, columns].
            maximize: take the maximum at each sum, with one-hot shares; otherwise add up, with posterior shares.
        """
        table = torch.cat([torch.zeros_like(leaves[:1]), leaves])
        shares: list[Tensor] = []
        sums = leaves
        for i, (count, fan_in, first) in enumerate(self.steps):
            edges = self._bags(table, f"factors_{i}")
            if weights is not None and first >= self.num_fixed:
                start = first - self.num_fixed
                edges = edges + weights[start : start + count * fan_in]
            edges = edges.reshape(count, fan_in, -1)
            sums, part = _reduced(edges, maximize)
            shares.append(part)
            table = torch.cat([table, sums])
        return sums[-1], shares

    def downward(self, shares: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Flows into the literals [2 variables, columns] and through the weighted edges [W, columns]."""
        flows = torch.zeros_like(shares[0][0, :1])
        for i in reversed(range(len(self.steps))):
            arriving = self._bags(flows, f"parents_{i}") + self.get_buffer(f"root_{i}").to(flows.dtype)
            flows = torch.cat([flows, (shares[i] * arriving[:, None]).flatten(0, 1)])
        return self._bags(flows, "leaf_parents"), flows.index_select(0, self.get_buffer("weight_flows"))

    def _keep(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values.clone(), persistent=False)  # not a view: exporters save whole storages

    def _bags(self, table: Tensor, name: str) -> Tensor:
        """Sums of the rows in each list [lists, columns]."""
        index = self.get_buffer(name)
        if index.shape[1] == 1:
            return table.index_select(0, index[:, 0])
        gathered = table.index_select(0, index.flatten())
        return gathered.reshape(index.shape[0], index.shape[1], -1).sum(1)


def _reduced(edges: Tensor, maximize: bool) -> tuple[Tensor, Tensor]:
    if edges.shape[1] == 1:
        return edges[:, 0], torch.ones_like(edges)
    top = edges.amax(1)
    if maximize:
        places = torch.arange(edges.shape[1], device=edges.device)[None, :, None]
        return top, (places == edges.argmax(1, keepdim=True)).to(edges.dtype)
    sums = top + (edges - top[:, None]).exp().sum(1).log()
    return sums, (edges - sums[:, None]).exp()


def _padded(values: Tensor, offsets: Tensor | None, lists: int) -> Tensor:
    """Lists of different lengths as a table [lists, most], padded with 0."""
    if offsets is None:
        return values.reshape(lists, 1)
    counts = torch.cat([offsets, offsets.new_tensor([len(values)])]).diff()
    most = max(1, int(counts.max())) if lists else 1
    table = torch.zeros((lists, most), dtype=torch.int64)
    owner = torch.repeat_interleave(torch.arange(lists), counts)
    place = torch.arange(len(values)) - torch.repeat_interleave(offsets, counts)
    table[owner, place] = values
    return table


def _is_root(plan: Plan, step: Step) -> Tensor:
    rows = torch.arange(step.rows.start, step.rows.stop)
    return (rows == plan.root_row).to(torch.float32)[:, None]
