"""Other packages that evaluate circuits, set up for the same circuits and queries."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semprola.circuit import LITERAL, PRODUCT, Circuit
from semprola.circuit.transforms import smooth

_MOST_CIRKIT_NODES = 3000
_MOST_KLAY_EDGES = 30_000
_MOST_PYJUICE_NODES = 30_000
_CHECKED = 4
"""States whose likelihoods are compared."""


class Unable(Exception):
    """Why a peer cannot do a case."""


def missing_peers(*modules: str) -> list[str]:
    """One line for each package to compare with that is not installed."""
    every = {
        "klay": "klaycircuits",
        "cirkit": "libcirkit",
        "jax": "jax",
        "pyjuice": "pyjuice",
        "torchcrf": "pytorch-crf",
    }
    packages = {module: every[module] for module in modules}
    return [
        f"{name} is not installed, so nothing is compared with it: make bench installs it"
        for module, name in packages.items()
        if importlib.util.find_spec(module) is None
    ]


class Peers:
    """The modules that other packages make from a circuit, each made on first use.

    Every function raises `Unable` if the package cannot do it, or if its numbers are not ours.

    Args:
        circuit: the circuit.
        device: where to evaluate.
    """

    def __init__(self, circuit: Circuit, device: torch.device | str = "cpu") -> None:
        self.circuit, self._device = circuit, torch.device(device)

    def klay_log_z(
        self, scores: tuple[Tensor, Tensor], suppressed: tuple[Tensor, Tensor], log_z: tuple[Tensor, Tensor]
    ) -> tuple[Callable[[], Tensor], list[Tensor]]:
        """KLay's log Z of literal scores [variables, batch], and the inputs to differentiate by.

        Args:
            scores: log-scores of "is 0" and of "is 1".
            suppressed: the same, normalised so that zero-suppressed labels need not be mentioned; KLay gets the smaller
                circuit if it can represent it.
            log_z: our results for either [batch].
        """
        module, spelled_out = self._klay_alone
        zeros, ones = (t.T.contiguous() for t in (scores if spelled_out else suppressed))
        ones.requires_grad_()
        check(module(ones, zeros)[..., 0], log_z[0 if spelled_out else 1])
        return lambda: module(ones, zeros).sum(), [ones]

    def klay_step(self, y: Tensor) -> tuple[Callable[[], Tensor], list[Tensor]]:
        """KLay's likelihood of states y [batch, labels] with one weight per edge and sample.

        KLay's own weighted circuits have the same weights for a whole batch, so weights are literals here. They are
        made from logits by one softmax for all sums with the same number of edges.
        """
        module, blocks = self._klay_weighted
        log_ones = torch.zeros_like(y).masked_fill(y == 0, -torch.inf)
        log_zeros = torch.zeros_like(y).masked_fill(y == 1, -torch.inf)
        sizes = [edges * sums for edges, sums in blocks]
        logits = torch.randn((len(y), sum(sizes)), generator=torch.Generator().manual_seed(0)).requires_grad_()
        nothing = torch.zeros_like(logits)

        def values(logits: Tensor) -> Tensor:
            parts = zip(blocks, logits.split(sizes, 1), strict=True)
            weights = [torch.log_softmax(part.unflatten(1, block), 1).flatten(1) for block, part in parts]
            value: Tensor = module(torch.cat([log_ones, *weights], 1), torch.cat([log_zeros, nothing], 1))
            return value[..., 0]

        check(values(nothing)[:_CHECKED], uniform_likelihood(self.circuit, y[:_CHECKED]))
        return lambda: values(logits).sum(), [logits]

    def cirkit_step(self, y: Tensor) -> tuple[Callable[[], Tensor], list[Tensor]]:
        """cirkit's likelihood of states y [batch, labels] with one weight per edge (the same for the whole batch)."""
        module, states = self._cirkit, y.to(torch.int64)
        weights = [w for name, w in module.named_parameters() if ".weight." in name]  # the others are the literals'
        with torch.no_grad():
            for each in weights:
                each.fill_(1 / each.shape[-1])
        check(module(states).flatten()[:_CHECKED], uniform_likelihood(self.circuit, y[:_CHECKED]))
        return lambda: module(states).sum(), weights

    def pyjuice_step(self, y: Tensor) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
        """PyJuice's likelihood of states y [batch, labels] with one weight per edge (the same for the whole batch).

        It computes gradients in a function of its own, so this returns the likelihood, and a call that does both. It
        has only CUDA kernels: version 2.6.3 asks for a device as soon as it gets a circuit.
        """
        if importlib.util.find_spec("pyjuice") is None:
            raise Unable("pyjuice is not installed")
        if not torch.cuda.is_available():
            raise Unable("pyjuice needs a CUDA device")
        module = importlib.import_module("pyjuice").TensorCircuit(pyjuice_nodes(self.circuit)).to(self._device)
        states = y.to(torch.int64)

        def step() -> Tensor:
            value: Tensor = module(states)
            module.backward(states, flows_memory=0.0)
            return value

        with torch.no_grad():
            check(module(states).flatten()[:_CHECKED], uniform_likelihood(self.circuit, y[:_CHECKED]))
        return lambda: module(states), step

    @cached_property
    def _klay_alone(self) -> tuple[Any, bool]:
        made, _, spelled_out = klay_circuit(self.circuit, weigh_edges=False)
        return made.to_torch_module(semiring="log", compile=False).to(self._device), spelled_out

    @cached_property
    def _klay_weighted(self) -> tuple[Any, list[tuple[int, int]]]:
        if self.circuit.num_edges > _MOST_KLAY_EDGES:
            raise Unable(f"one weight per edge of the smoothed circuit takes minutes above {_MOST_KLAY_EDGES} edges")
        made, blocks, _ = klay_circuit(self.circuit, weigh_edges=True)
        return made.to_torch_module(semiring="log", compile=False).to(self._device), blocks

    @cached_property
    def _cirkit(self) -> Any:
        return _cirkit(self.circuit).to(self._device)


def check(found: Tensor, expected: Tensor) -> None:
    """See whether a peer computes the same.

    Raises:
        Unable: if it does not.
    """
    if found.shape != expected.shape or not torch.allclose(found.to(expected.dtype), expected, rtol=2e-3, atol=2e-3):
        gap = float((found - expected).detach().abs().max()) if found.shape == expected.shape else float("nan")
        raise Unable(f"its numbers are not ours (largest difference {gap:.2g})")


def uniform_likelihood(circuit: Circuit, y: Tensor) -> Tensor:
    """Log-likelihood of states [batch, labels] where all edges of a sum have the same weight [batch]."""
    circuit = _smooth(circuit)
    on = y.detach().cpu().numpy() > 0.5
    values: list[Any] = []
    with np.errstate(divide="ignore"):
        for n in range(circuit.num_nodes):
            below = [values[child] for child in circuit.children_of(n).tolist()]
            if circuit.kind[n] == LITERAL:
                signed = int(circuit.literal[n])
                values.append(np.where(on[:, abs(signed) - 1] == (signed > 0), 0.0, -np.inf))
            elif circuit.kind[n] == PRODUCT:
                values.append(np.sum(below, axis=0) if below else np.zeros(len(on)))
            else:
                values.append(np.logaddexp.reduce(below, axis=0) - np.log(len(below)))
    return torch.from_numpy(values[circuit.root]).to(y.device, y.dtype)


def pyjuice_nodes(circuit: Circuit) -> Any:
    """PyJuice's nodes for a circuit, one block of one node for each, with equal weights; returns the root."""
    circuit = _smooth(circuit)
    if circuit.num_nodes > _MOST_PYJUICE_NODES:
        raise Unable(f"one object per node: not built above {_MOST_PYJUICE_NODES} nodes")
    construction = importlib.import_module("pyjuice.nodes")
    literal = importlib.import_module("pyjuice.nodes.distributions").Literal
    one: dict[str, Any] = {"num_node_blocks": 1, "block_size": 1}
    nodes: list[Any] = []
    for n in range(circuit.num_nodes):
        below = [nodes[child] for child in circuit.children_of(n).tolist()]
        if circuit.kind[n] == LITERAL:
            signed = int(circuit.literal[n])
            nodes.append(construction.inputs(abs(signed) - 1, dist=literal(signed > 0), **one))
        elif circuit.kind[n] == PRODUCT:
            nodes.append(construction.multiply(*below))
        else:
            below = [construction.multiply(node) if node.is_sum() else node for node in below]
            equal = torch.full((len(below), 1, 1), 1 / len(below))
            nodes.append(construction.summate(*below, params=equal, **one))
    return nodes[circuit.root]


def _cirkit(circuit: Circuit) -> Any:
    """A cirkit module with a weight for each edge."""
    if importlib.util.find_spec("cirkit") is None:
        raise Unable("libcirkit is not installed")
    graph = importlib.import_module("cirkit.templates.logic.graph")
    parameters = importlib.import_module("cirkit.symbolic.parameters")
    random = importlib.import_module("cirkit.symbolic.initializers").NormalInitializer

    circuit = _smooth(circuit)
    if circuit.num_nodes > _MOST_CIRKIT_NODES:
        raise Unable(f"one layer object per node: not built above {_MOST_CIRKIT_NODES} nodes")
    nodes: list[Any] = []
    inputs: dict[Any, list[Any]] = {}
    for n in range(circuit.num_nodes):
        if circuit.kind[n] == LITERAL:
            signed = int(circuit.literal[n])
            nodes.append(
                graph.LiteralNode(abs(signed) - 1) if signed > 0 else graph.NegatedLiteralNode(abs(signed) - 1)
            )
            continue
        nodes.append(graph.ConjunctionNode() if circuit.kind[n] == PRODUCT else graph.DisjunctionNode())
        inputs[nodes[-1]] = [nodes[child] for child in circuit.children_of(n).tolist()]

    def weights(shape: tuple[int, ...]) -> Any:
        return parameters.Parameter.from_input(parameters.TensorParameter(*shape, initializer=random(1.0, 0.1)))

    logical = graph.LogicalCircuit(nodes, inputs, [nodes[circuit.root]])
    best = importlib.import_module("cirkit.pipeline").PipelineContext(semiring="lse-sum", fold=True, optimize=True)
    return best.compile(logical.build_circuit(weight_factory=weights, enforce_smoothness=False))


def klay_circuit(circuit: Circuit, *, weigh_edges: bool) -> tuple[Any, list[tuple[int, int]], bool]:
    """KLay's circuit; its weights as blocks of sums alike (edges of each, number of sums), of which first come the
    weights of all first edges, then of all second ones, ...; and whether all labels had to be spelled out."""
    if importlib.util.find_spec("klay") is None:
        raise Unable("klaycircuits is not installed")
    klay = importlib.import_module("klay")
    # KLay takes "anything or true" for true, so what a branch leaves out has to be spelled out where it leaves out all
    empty = bool(((circuit.kind == PRODUCT) & (np.diff(circuit.child_start) == 0)).any())
    if empty or weigh_edges:
        circuit = _smooth(circuit)
    made = klay.Circuit()
    nodes: list[Any] = []
    fan_ins = np.diff(circuit.child_start)[(circuit.kind != LITERAL) & (circuit.kind != PRODUCT)]
    blocks = [(int(k), int((fan_ins == k).sum())) for k in np.unique(fan_ins[fan_ins > 1])] if weigh_edges else []
    sums_of = dict(blocks)
    ends = np.cumsum([edges * sums for edges, sums in blocks])
    next_weight = {edges: int(end) - edges * sums for (edges, sums), end in zip(blocks, ends, strict=True)}
    for n in range(circuit.num_nodes):
        children = [nodes[child] for child in circuit.children_of(n).tolist()]
        if circuit.kind[n] == LITERAL:
            nodes.append(made.literal_node(int(circuit.literal[n])))
        elif len(children) == 1:
            nodes.append(children[0])
        elif circuit.kind[n] == PRODUCT:
            nodes.append(made.and_node(children))
        else:
            if weigh_edges:
                fan_in = len(children)
                first = circuit.num_variables + 1 + next_weight[fan_in]
                next_weight[fan_in] += 1
                children = [
                    made.and_node([made.literal_node(first + i * sums_of[fan_in]), child])
                    for i, child in enumerate(children)
                ]
            nodes.append(made.or_node(children))
    made.set_root(nodes[circuit.root])
    made.remove_unused_nodes()
    return made, blocks, empty or weigh_edges


def _smooth(circuit: Circuit) -> Circuit:
    return smooth(circuit, np.arange(circuit.num_variables) < circuit.num_labels)
