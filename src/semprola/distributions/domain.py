"""The label vectors that a distribution allows: those that fit the constraint, the given inputs and the evidence.

All distributions over a circuit share its plans, which are made once.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint

from semprola.circuit import PRODUCT, Circuit
from semprola.distributions.arguments import flat_rows, is_hidden
from semprola.distributions.names import as_rows
from semprola.engine import CircuitPlans, Literals, Plan, choices, indicators, supported

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


class Domain:
    """A constraint together with observations, one column per element of a flat batch.

    Args:
        observed: values of all variables, NaN where not observed [variables, batch]; None if nothing is observed.
    """

    def __init__(
        self, plans: CircuitPlans, like: Tensor, batch: int, observed: Tensor | None = None, has_evidence: bool = False
    ) -> None:
        self.plans, self.batch, self.observed, self.has_evidence = plans, batch, observed, has_evidence
        self.dtype, self.device = like.dtype, like.device

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self.plans.circuit

    @property
    def has_no_rule(self) -> bool:
        """Whether the circuit is an empty product, which allows every label vector."""
        circuit = self.circuit
        return circuit.num_nodes == 1 and circuit.kind[0] == PRODUCT and not circuit.zero_suppressed.any()

    @property
    def needs_explicit(self) -> bool:
        """Whether zero-suppressed labels have to be spelled out, because they may be observed to be one."""
        return self.has_evidence and bool(self.circuit.zero_suppressed.any())

    @property
    def masks(self) -> tuple[Tensor, Tensor]:
        """Scores of "variable is 0" and "is 1": -inf where observations exclude it, else 0 [variables, batch]."""
        if self.observed is None:
            blank = torch.zeros((self.circuit.num_variables, self.batch), dtype=self.dtype, device=self.device)
            return blank, blank
        return indicators(self.observed, self.dtype)

    def select(self, index: Tensor) -> Domain:
        """The domain of some elements of the batch, by flat index."""
        observed = None if self.observed is None else self.observed[:, index]
        return Domain(self.plans, self.like, len(index), observed, self.has_evidence)

    def under(self, plans: CircuitPlans) -> Domain:
        """The same observations with other plans over the same labels."""
        return Domain(plans, self.like, self.batch, self.observed, self.has_evidence)

    def observe(self, rows: Tensor) -> tuple[Domain, Tensor]:
        """The domain with evidence [labels, batch] added (NaN: none), and where it contradicts the old one [batch]."""
        conflict = torch.zeros(self.batch, dtype=torch.bool, device=rows.device)
        if self.observed is not None:
            old = self.observed[: len(rows)]
            conflict = (~old.isnan() & ~rows.isnan() & (old != rows)).any(0)
            rows = torch.cat([torch.where(rows.isnan(), old, rows), self.observed[len(rows) :]])
        return Domain(self.plans, self.like, self.batch, rows, True), conflict

    def contradicts(self, y: Tensor) -> Tensor | None:
        """Whether y [labels, samples, batch] contradicts the evidence: bool [samples, batch]; None without evidence."""
        if not self.has_evidence or self.observed is None:
            return None
        seen = self.observed[: len(y), None]
        return ((y != seen) & ~seen.isnan()).any(0)

    def has_givens_of(self, other: Domain) -> bool:
        """Whether the given variables have the same values as another domain's; false if that cannot be told."""
        if not self.circuit.given or self.observed is None or other.observed is None:
            return True
        labels = self.circuit.num_labels
        ours, theirs = self.observed[labels:], other.observed[labels:]
        return not is_hidden(ours) and not is_hidden(theirs) and torch.equal(ours, theirs)

    def may_contradict(self, other: Domain) -> Tensor:
        """Whether some state of this domain contradicts the evidence of another one with the same inputs [batch]."""
        if not other.has_evidence or other.observed is None:
            return torch.zeros(self.batch, dtype=torch.bool, device=self.device)
        seen = other.observed[: self.circuit.num_labels]
        with torch.no_grad():  # the state with the most contradictions
            worst = self.best_total((1 - 2 * seen).nan_to_num(0.0).to(self.dtype))
        return ((worst != seen) & ~seen.isnan()).any(0)

    def satisfied(self, y: Tensor) -> Tensor:
        """Whether y [labels, samples, batch] satisfies the constraint for the given inputs: bool [samples, batch]."""
        if self.has_no_rule:
            return torch.ones(y.shape[1:], dtype=torch.bool, device=y.device)
        return supported(self.plans.constraint_explicit, self.leaves_of(y)).view(y.shape[1:])

    def rows_of(self, y: Tensor) -> Tensor:
        """Values of all variables [variables, samples, batch]: those of y [labels, samples, batch] and the given."""
        if not self.circuit.given or self.observed is None:
            return y
        given = self.observed[len(y) :, None].expand(-1, y.shape[1], -1)
        return torch.cat([y, given.to(y.dtype)])

    def leaves_of(self, y: Tensor) -> Tensor:
        """Leaves that allow only the literals of y [labels, samples, batch], and of the given inputs."""
        return torch.stack(indicators(self.rows_of(y).flatten(1), self.dtype), dim=1).flatten(0, 1)

    def all_states(self) -> Tensor:
        """Every label vector that is a model for some input [states, labels]."""
        if self.can_be_listed():
            return self.plans.few_states.to(self.like)
        rows = torch.from_numpy(self.circuit.enumerate()[:, : self.circuit.num_labels].copy())
        return (torch.unique(rows, dim=0) if self.circuit.given else rows).to(self.like)

    def candidates(self) -> Tensor:
        """All states as candidates for each element of the batch [labels, states, batch]."""
        return self.all_states().T[:, :, None].expand(-1, -1, self.batch)

    def can_be_listed(self, most: int = 2**12) -> bool:
        """Whether there are few enough states to answer a query by listing them."""
        return self.plans.model_count <= most

    def best_total(self, gains: Tensor, column: Tensor | None = None) -> Tensor:
        """The allowed state with the largest Σ_j gains_j y_j [labels, n].

        Args:
            gains: [labels, n]
            column: the element of the batch for each of n [n]; None for all elements in order.
        """
        plan = self.plans.constraint_explicit if self.needs_explicit else self.plans.constraint
        ones = torch.cat([gains, gains.new_zeros((len(self.circuit.given), gains.shape[1]))])
        zeros = torch.zeros_like(ones)
        if self.observed is not None:
            seen = self.observed if column is None else self.observed[:, column]
            no_zero, no_one = indicators(seen, gains.dtype)
            zeros, ones = zeros + no_zero, ones + no_one
        return maximum(plan, None, zeros, ones)[0][: len(gains)]

    @property
    def like(self) -> Tensor:
        """An empty tensor with the type and device of all results."""
        return torch.empty(0, dtype=self.dtype, device=self.device)


def maximum(plan: Plan, weights: Tensor | None, zeros: Tensor, ones: Tensor) -> tuple[Tensor, Tensor]:
    """The state of largest value [variables, columns] and its log-value [columns], for scores [variables, columns]."""
    return choices.maximize(plan, weights, Literals.of(plan, zeros, ones, maximize=True))


_KEPT = "_plans"
_lock = Lock()


def plans_of(circuit: Circuit | CircuitPlans, units: int = 1, mixing: str = "cross") -> CircuitPlans:
    """The plans of a circuit; every call returns the same object.

    The plans are kept on the circuit and live as long as it does. They are not copied, pickled or saved with it. Safe
    to call from several threads.

    Args:
        mixing: which units of a product's two inputs are multiplied, "cross" or "elementwise".
    """
    if isinstance(circuit, CircuitPlans):
        return circuit
    # copies with another note share this dict, hence the id; plans hold their circuit, so its id is not reused
    key = (id(circuit), units, mixing)
    found: CircuitPlans | None = circuit.__dict__.get(_KEPT, {}).get(key)
    if found is not None:
        return found
    made = CircuitPlans(circuit, units, mixing)
    with _lock:
        kept: dict[tuple[int, int, str], CircuitPlans] = circuit.__dict__.setdefault(_KEPT, {})
        return kept.setdefault(key, made)


class Satisfies(Constraint):
    """Label vectors that satisfy the constraint, for the distribution's given inputs and evidence."""

    is_discrete = True
    event_dim = 1

    def __init__(self, distribution: ConstrainedDistribution) -> None:
        self._distribution = distribution
        super().__init__()

    def check(self, value: Any) -> Tensor:
        """Whether each row of value [*sample, *batch, labels] (or by name) is in the support: bool."""
        p = self._distribution
        domain = p.evaluator.domain
        rows = as_rows(value, p.labels, "y", domain.like)
        y, shape = flat_rows(rows, len(p.labels), p.batch_shape, domain.like)
        binary = ((y == 0) | (y == 1)).all(0)
        with torch.no_grad():
            inside = binary & domain.satisfied((y > 0.5).to(y.dtype))
        contradicted = domain.contradicts(y)
        if contradicted is not None:
            inside &= ~contradicted
        return inside.reshape(shape)

    def __repr__(self) -> str:
        return f"Satisfies({self._distribution.circuit!r})"
