"""The layers: the last module of a network, which returns a distribution over the label vectors of a constraint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from semprola.compiler.sources import Source
from semprola.compiler.splitting import Split
from semprola.distributions import ConstrainedDistribution, MixtureDistribution, SPLDistribution
from semprola.distributions.mixtures import beside_known_states
from semprola.engine import CircuitPlans, logits_of
from semprola.nn.base import GatedLayer, GateLike, as_circuit, one_name
from semprola.nn.gate import positive, split_columns
from semprola.nn.known import KnownTable
from semprola.nn.pooled import pooled
from semprola.nn.q import KINDS, Q
from semprola.nn.scored import scored_distribution
from semprola.nn.starting import branch_weights, label_odds

_APART = 0.5
"""Standard deviation of the noise that makes the components and units of a mixture differ at the start."""


class SPL(GatedLayer):
    """Semantic probabilistic layer with a single circuit (Definition 3.6 of the paper).

    Every sum of the constraint's circuit weights its branches by a softmax of the gate's output, so the distribution is
    already normalised. At the start, the layer is close to uniform over the models of the constraint.

    Args:
        in_features: width of the features z.
        constraint: a formula, its text, a family, a compiled circuit, the path of a file, or a split (see
            :func:`semprola.split`), for which the result is a :class:`semprola.nn.PooledLayer`.
        components: number of circuits, each with its own parameters, in one input-dependent mixture; m of the paper, 1
            by default. The paper's name ``replicas`` is accepted too.
        units: number of copies of each sum, over the cross product of its inputs (Algorithm 1); k of the paper.
        mixing: "cross" multiplies every unit of one input with every unit of the other, which takes k³ parameters per
            branch; "elementwise" multiplies only unit i with unit i, which takes k².
        gate: widths of the gate's hidden layers; or an `nn.Module` from z to [*batch, num_gate_outputs], used as it is
            (``nn.Identity()`` if the network before the layer computes the parameters itself); or a function that makes
            one from its input and output widths, such as ``nn.Linear``.
        dropout: probability of dropout in the gate, after each hidden layer.
        labels: the column order of y; by default the constraint's own.
        known_states: label vectors [rows, labels], such as those of the training data. They add a component over these
            vectors only: p(y) ∝ exp(θ·y + b_y), with θ from the gate and b_y the log-frequency of y. This component
            learns which whole label sets are likely; the others keep every y of the constraint possible.
        device: where the parameters live.
        dtype: type of the parameters.
        timeout, max_nodes, memory: the budget of a compilation, see :func:`semprola.compile`.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.SPL(8, sp.parse("(cat -> animal) & (dog -> animal)"))
        >>> p = layer(torch.randn(3, 8))
        >>> p.mode.shape
        torch.Size([3, 3])
        >>> bool(layer.circuit.satisfied(p.mode).all())
        True
        >>> layer.num_gate_outputs == layer.gate.output.out_features
        True
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """A layer over a split is a :class:`semprola.nn.PooledLayer`."""
        return pooled(cls, args, options) or super().__new__(cls)

    def __init__(
        self,
        in_features: int,
        constraint: Source | Split,
        *,
        components: int | None = None,
        units: int = 1,
        mixing: str = "cross",
        gate: GateLike = (),
        dropout: float = 0.0,
        labels: Iterable[str] | None = None,
        known_states: Any = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        timeout: float | None = None,
        max_nodes: int | None = None,
        memory: int | str | None = None,
        replicas: int | None = None,
    ) -> None:
        components = one_name(components, "replicas", replicas)
        plans = CircuitPlans(
            as_circuit(constraint, labels, timeout, max_nodes, memory), positive(units, "units"), mixing
        )
        plans.prepare_layer()
        self.units = units
        super().__init__(
            in_features,
            plans,
            components=components,
            parameters=plans.layer.num_logits,
            gate=gate,
            dropout=dropout,
            device=device,
            dtype=dtype,
            known=0 if known_states is None else plans.circuit.num_labels,
        )
        self.known = None if known_states is None else KnownTable(plans, known_states, device)

    @property
    def replicas(self) -> int:
        """The paper's name for `components`."""
        return self.components

    def forward(
        self, z: Tensor, given: Any = None, *, scored: Tensor | None = None
    ) -> SPLDistribution | MixtureDistribution:
        """The distribution over y for features z.

        A label vector uses few of the weights of a large circuit. A layer that knows which labels will be scored
        multiplies only those rows of its gate, which makes a training step several times faster. Values and gradients
        are the same. :func:`semprola.training.fit` does this by itself.

        Args:
            z: features [*batch, in_features].
            given: values of the given variables [*batch, given].
            scored: the label vectors [*batch, labels] that you will pass to `log_prob` (the same tensor). Other queries
                then multiply the whole gate when you ask for them; they are refused once parameters have changed.
                (A change through ``.data`` is not noticed, because torch does not count it.)

        Example:
            >>> import torch, semprola as sp
            >>> layer, y = sp.SPL(8, sp.constraints.permutation(3)), torch.eye(3).flatten()[None]
            >>> loss = -layer(torch.zeros(1, 8), scored=y).log_prob(y).mean()
            >>> round(loss.exp().item(), 4)
            6.0
        """
        if self.known is None:
            known_labels = None if scored is None else scored_distribution(self, z, scored)
            if known_labels is not None:
                return known_labels
            parameters, mixing = self._gated(z)
            return SPLDistribution(self.plans, parameters, mixing, given)
        own, odds, mixing = split_columns(self._outputs(z), self._widths)
        parameters = own.unflatten(-1, (self.num_parameters, self.components)).transpose(-1, -2)
        return beside_known_states(self.plans, parameters, mixing, self.known.table, odds, self.known.bias, given)

    def extra_repr(self) -> str:
        """What `repr` shows besides the gate."""
        mixing = f", mixing={self.plans.mixing!r}" if self.units > 1 else ""
        known = f", known_states={len(self.known.states)}" if self.known is not None else ""
        return f"{self.circuit!r}, components={self.components}, units={self.units}{mixing}{known}"

    def _start(self) -> tuple[Tensor, float]:
        start = logits_of(self.plans.layer, self.plans.log_counts)
        return start, _APART if self.components * self.units > 1 else 0.0

    def _fitted(self, y: Tensor, given: Tensor | None, weight: Tensor, smoothing: float) -> Tensor:
        return logits_of(self.plans.layer, branch_weights(self.plans, y, given, weight, smoothing))


class ProductSPL(GatedLayer):
    """Semantic probabilistic layer with two circuits (Definition 1 of the paper): q(y | z) times the
    constraint, over Z.

    Args:
        in_features: width of the features z.
        constraint: a formula, its text, a family, a compiled circuit, the path of a file, or a split (see
            :func:`semprola.split`), for which the result is a :class:`semprola.nn.PooledLayer`.
        components: number of components of q, 1 by default; the name ``mixtures`` is accepted too.
        units: number of hidden states for "hmm" and "vtree", 2 by default; a factorised q has none. A circuit without
            the structure that these need is rebuilt by PySDD (``layer.circuit.info["restructured"]`` says so); compile
            with ``backend="sdd"`` to avoid this.
        q: "factorized" (independent labels in each component), "hmm" (a hidden Markov model along the circuit's
            variable order), "vtree" (a circuit over the constraint's vtree), or a subclass of `semprola.nn.Q`.
        gate: widths of the gate's hidden layers; or an `nn.Module` from z to [*batch, num_gate_outputs], used as it is;
            or a function that makes one from its input and output widths, such as ``nn.Linear``.
        dropout: probability of dropout in the gate, after each hidden layer.
        labels: the column order of y; by default the constraint's own.
        device: where the parameters live.
        dtype: type of the parameters.
        timeout, max_nodes, memory: the budget of a compilation, see :func:`semprola.compile`.

    Raises:
        PropertyError: if q is "hmm" or "vtree" and the circuit respects no suitable vtree and cannot be given one.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.ProductSPL(8, sp.one_hot(["a", "b", "c"]), components=2)(torch.randn(5, 8))
        >>> p.mode.sum(-1)
        tensor([1., 1., 1., 1., 1.])
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """A layer over a split is a :class:`semprola.nn.PooledLayer`."""
        return pooled(cls, args, options) or super().__new__(cls)

    def __init__(
        self,
        in_features: int,
        constraint: Source | Split,
        *,
        components: int | None = None,
        units: int | None = None,
        q: str | type[Q] = "factorized",
        gate: GateLike = (),
        dropout: float = 0.0,
        labels: Iterable[str] | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        timeout: float | None = None,
        max_nodes: int | None = None,
        memory: int | str | None = None,
        mixtures: int | None = None,
    ) -> None:
        components = one_name(components, "mixtures", mixtures)
        kind = KINDS.get(q) if isinstance(q, str) else q
        if not (isinstance(kind, type) and issubclass(kind, Q)):
            raise ValueError(f"q must be 'factorized', 'hmm', 'vtree' or a subclass of Q, not {q!r}")
        made = kind(as_circuit(constraint, labels, timeout, max_nodes, memory), units)
        self.q, self.units, self._q = q, made.units, made
        super().__init__(
            in_features,
            made.plans,
            components=components,
            parameters=made.num_parameters,
            gate=gate,
            dropout=dropout,
            device=device,
            dtype=dtype,
        )

    @property
    def mixtures(self) -> int:
        """Another name for `components`."""
        return self.components

    def forward(self, z: Tensor, given: Any = None) -> ConstrainedDistribution:
        """The distribution over y for features z [*batch, in_features] (and inputs [*batch, given])."""
        return self._q.distribution(*self._gated(z), given)

    def extra_repr(self) -> str:
        """What `repr` shows besides the gate."""
        width = f", units={self.units}" if self._q.has_symmetry else ""
        name = repr(self.q) if isinstance(self.q, str) else self.q.__name__
        return f"{self.circuit!r}, components={self.components}, q={name}{width}"

    def _start(self) -> tuple[Tensor, float]:
        # log-odds of zero make q uniform, so the layer is uniform over the models
        apart = self.components > 1 or self._q.has_symmetry
        return torch.zeros(self.num_parameters), _APART if apart else 0.0

    def _fitted(self, y: Tensor, given: Tensor | None, weight: Tensor, smoothing: float) -> Tensor:
        return self._q.independent(label_odds(self.circuit, y, given, weight, smoothing))
