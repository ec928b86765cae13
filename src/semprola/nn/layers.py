"""The layers: the last module of a network, returning a distribution over label vectors that obey a constraint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler import compile, restructure
from semprola.distributions import CompatibleDistribution, ProductDistribution, SPLDistribution
from semprola.distributions.encoding import EncodedStates
from semprola.engine import CompatibleStructure, Structure, logits_of
from semprola.errors import FormatError, LabelError, PropertyError
from semprola.logic import Formula
from semprola.nn.gate import Gate, hidden_sizes, positive

_APART = 0.5
"""Standard deviation of the noise that sets the components and units of a mixture apart at the start."""


class _ConstrainedLayer(nn.Module):
    """What both layers share: the compiled constraint, and a state dict that knows which circuit it belongs to."""

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.structure = structure

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self.structure.circuit

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.circuit.labels

    def get_extra_state(self) -> Tensor:
        """A fingerprint of the circuit, saved with the parameters."""
        return torch.tensor(list(bytes.fromhex(self.circuit.digest)[:16]), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Refuse parameters that were trained for another circuit: they would silently mean something else."""
        if not torch.equal(state.cpu(), self.get_extra_state()):
            raise FormatError("these parameters belong to another circuit: save and load the circuit beside them")


class SPL(_ConstrainedLayer):
    """Semantic probabilistic layer with a single circuit (Def. 3.6 of the paper).

    Every sum of the constraint's circuit weighs its branches by a softmax of the gate's output, so the distribution is
    normalised as it stands. At the start the layer is close to uniform over the models of the constraint.

    Args:
        in_features: width of the features z.
        constraint: a formula, its text, a family, or a compiled circuit.
        replicas: m of the paper: circuits with parameters of their own under one input-dependent mixture.
        units: k of the paper: copies of each sum over the cross product of its inputs (Algorithm 1).
        gate: widths of the gate's hidden layers.
        mixing: "cross" multiplies every unit of one input with every unit of the other, for k³ parameters a branch;
            "elementwise" only units of equal rank, for k².

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.SPL(8, sp.parse("(cat -> animal) & (dog -> animal)"))
        >>> p = layer(torch.randn(3, 8))
        >>> p.mode.shape
        torch.Size([3, 3])
        >>> bool(layer.circuit.satisfied(p.mode).all())
        True
    """

    def __init__(
        self,
        in_features: int,
        constraint: Circuit | Formula | str,
        replicas: int = 1,
        units: int = 1,
        gate: Iterable[int] | int = (),
        mixing: str = "cross",
    ) -> None:
        circuit = as_circuit(constraint)
        super().__init__(Structure(circuit, positive(units, "units"), mixing))
        self.structure.prepare("layer", "layer_explicit", *([] if units == 1 else ["bound"]))
        self.replicas = positive(replicas, "replicas")
        self.units = units
        noise = _APART if replicas * units > 1 else 0.0
        self.gate = Gate(
            positive(in_features, "in_features"),
            hidden_sizes(gate),
            replicas,
            self.structure.layer.num_logits,
            logits_of(self.structure.layer, self.structure.log_counts),
            noise,
        )

    def forward(self, z: Tensor, given: Any = None) -> SPLDistribution:
        """The distribution over y for features z [*batch, in_features] (and inputs [*batch, given])."""
        parameters, mixing = self.gate(z)
        return SPLDistribution(self.structure, parameters, mixing, given)

    def encode(self, y: Tensor) -> EncodedStates:
        """What label vectors y [*batch, labels] use of the circuit, to be worked out once for many epochs.

        Index the result like y, and pass it to `log_prob` in its place.
        """
        return EncodedStates.of(self.structure, y)

    def extra_repr(self) -> str:
        """What `repr` shows beside the gate."""
        mixing = f", mixing={self.structure.mixing!r}" if self.units > 1 else ""
        return f"{self.circuit!r}, replicas={self.replicas}, units={self.units}{mixing}"


class ProductSPL(_ConstrainedLayer):
    """Semantic probabilistic layer with two circuits (Def. 1 of the paper): q(y | z) times the constraint, over Z.

    Args:
        in_features: width of the features z.
        constraint: a formula, its text, a family, or a compiled circuit.
        mixtures: components of q.
        gate: widths of the gate's hidden layers.
        q: "factorized" (independent labels in each component), "hmm" (a hidden Markov model along the circuit's
            variable order) or "vtree" (a circuit over the constraint's vtree).
        units: hidden states, for "hmm" and "vtree". A circuit without the structure that these need is rebuilt by PySDD
            (``layer.circuit.info["restructured"]`` says so); compile with ``backend="sdd"`` to have it at once.

    Raises:
        PropertyError: "hmm" or "vtree" for a circuit that respects no vtree and cannot be given one.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.ProductSPL(8, sp.one_hot(["a", "b", "c"]), mixtures=2)(torch.randn(5, 8))
        >>> p.mode.sum(-1)
        tensor([1., 1., 1., 1., 1.])
    """

    def __init__(
        self,
        in_features: int,
        constraint: Circuit | Formula | str,
        mixtures: int = 1,
        gate: Iterable[int] | int = (),
        q: str = "factorized",
        units: int = 2,
    ) -> None:
        circuit = as_circuit(constraint)
        positive(units, "units")
        if q == "factorized":
            super().__init__(Structure(circuit))
            self.structure.prepare("constraint", "constraint_explicit")
            parameters = circuit.num_labels
        elif q in ("hmm", "vtree"):
            structure = CompatibleStructure(_structured(circuit, q), units, q)
            super().__init__(structure)
            structure.prepare(
                "constraint", "constraint_explicit", "product", "alone", *([] if units == 1 else ["bound"])
            )
            parameters = structure.num_parameters
        else:
            raise ValueError(f"q must be 'factorized', 'hmm' or 'vtree', not {q!r}")
        self.mixtures = positive(mixtures, "mixtures")
        self.q, self.units = q, units
        noise = _APART if mixtures > 1 or q != "factorized" else 0.0
        # log-odds of zero make q uniform, hence the layer uniform over the models
        bias = torch.zeros(parameters)
        self.gate = Gate(positive(in_features, "in_features"), hidden_sizes(gate), mixtures, parameters, bias, noise)

    def forward(self, z: Tensor, given: Any = None) -> ProductDistribution | CompatibleDistribution:
        """The distribution over y for features z [*batch, in_features] (and inputs [*batch, given])."""
        parameters, mixing = self.gate(z)
        if isinstance(self.structure, CompatibleStructure):
            return CompatibleDistribution(self.structure, parameters, mixing, given)
        return ProductDistribution(self.structure, parameters, mixing, given)

    def extra_repr(self) -> str:
        """What `repr` shows beside the gate."""
        width = f", units={self.units}" if self.q != "factorized" else ""
        return f"{self.circuit!r}, mixtures={self.mixtures}, q={self.q!r}{width}"


def as_circuit(constraint: Circuit | Formula | str) -> Circuit:
    """The circuit of a constraint, compiled if it is not one yet; fit for a layer."""
    circuit = constraint if isinstance(constraint, Circuit) else compile(constraint)
    if circuit.num_labels == 0:
        raise LabelError("the constraint has no labels: there is nothing to predict")
    if not circuit.is_decomposable or not circuit.is_deterministic:
        lacking = "decomposable" if not circuit.is_decomposable else "provably deterministic"
        raise PropertyError(f"the circuit is not {lacking}, so its sums are not probabilities: recompile it")
    return circuit


def _structured(circuit: Circuit, q: str) -> Circuit:
    """A circuit with the structure that q needs, rebuilt along a variable order or vtree if it has none."""
    if q == "vtree" and circuit.is_structured:
        return circuit
    if q == "hmm" and circuit.vtree is not None and circuit.vtree.is_right_linear and circuit.is_structured:
        return circuit
    return restructure(circuit, linear=q == "hmm")
