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


class Unable(Exception):
    """Why a peer cannot do a case."""


def missing_peers() -> list[str]:
    """One line for each package to compare with that is not installed."""
    packages = {"klay": "klaycircuits", "cirkit": "libcirkit", "jax": "jax"}
    return [
        f"{name} is not installed, so nothing is compared with it: make bench installs it"
        for module, name in packages.items()
        if importlib.util.find_spec(module) is None
    ]


class Peers:
    """The modules that other packages make from a circuit, each made on first use."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit

    def klay_log_z(
        self, scores: tuple[Tensor, Tensor], suppressed: tuple[Tensor, Tensor]
    ) -> tuple[Callable[[], Tensor], list[Tensor]]:
        """KLay's log Z of literal scores [variables, batch], and the inputs to differentiate by.

        Args:
            scores: log-scores of "is 0" and of "is 1".
            suppressed: the same, normalised so that zero-suppressed labels need not be mentioned; KLay gets the smaller
                circuit if it can represent it.
        """
        module, spelled_out = self._klay_alone
        zeros, ones = (t.T.contiguous() for t in (scores if spelled_out else suppressed))
        ones.requires_grad_()
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

        def run() -> Tensor:
            parts = zip(blocks, logits.split(sizes, 1), strict=True)
            weights = [torch.log_softmax(part.unflatten(1, block), 1).flatten(1) for block, part in parts]
            value: Tensor = module(torch.cat([log_ones, *weights], 1), torch.cat([log_zeros, nothing], 1))
            return value.sum()

        return run, [logits]

    def cirkit_step(self, y: Tensor) -> tuple[Callable[[], Tensor], list[Tensor]]:
        """cirkit's likelihood of states y [batch, labels] with one weight per edge (the same for the whole batch)."""
        module, states = self._cirkit, y.to(torch.int64)
        return lambda: module(states).sum(), [w for w in module.parameters() if w.requires_grad]

    def pyjuice_step(self, y: Tensor) -> tuple[Callable[[], Tensor], list[Tensor]]:
        """PyJuice has only CUDA kernels: version 2.6.3 asks for a device as soon as it gets a circuit."""
        if not torch.cuda.is_available():
            raise Unable("pyjuice needs a CUDA device")
        raise Unable("pyjuice wants circuits built in its own blocks, which these are not")

    @cached_property
    def _klay_alone(self) -> tuple[Any, bool]:
        made, _, spelled_out = klay_circuit(self.circuit, weigh_edges=False)
        return made.to_torch_module(semiring="log", compile=False), spelled_out

    @cached_property
    def _klay_weighted(self) -> tuple[Any, list[tuple[int, int]]]:
        if self.circuit.num_edges > _MOST_KLAY_EDGES:
            raise Unable(f"one weight per edge of the smoothed circuit takes minutes above {_MOST_KLAY_EDGES} edges")
        made, blocks, _ = klay_circuit(self.circuit, weigh_edges=True)
        return made.to_torch_module(semiring="log", compile=False), blocks

    @cached_property
    def _cirkit(self) -> Any:
        return _cirkit(self.circuit)


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
    return importlib.import_module("cirkit.pipeline").compile(
        logical.build_circuit(weight_factory=weights, enforce_smoothness=False)
    )


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
