"""What the layers share: the compiled constraint, the gate, and where its parameters start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.compiler.sources import Source
from semprola.compiler.splitting import Split
from semprola.engine import CircuitPlans
from semprola.errors import LabelError, PropertyError
from semprola.nn.gate import (
    Gate,
    hidden_sizes,
    last_linear,
    positive,
    require_tensor,
    shares_memory,
    split_outputs,
)
from semprola.nn.showing import Shown
from semprola.nn.starting import checked_number, checked_rows, checked_weight

GateLike = Iterable[int] | int | nn.Module | Callable[[int, int], nn.Module]
"""What `gate=` takes: widths of hidden layers, a module, or a function of its input and output widths."""
_GATES = "a width, a list of widths, a module or a function that makes one"


class GatedLayer(Shown, nn.Module):
    """A gate and a compiled constraint: what `SPL` and `ProductSPL` have in common.

    Args:
        in_features: width of the features z.
        plans: plans of the compiled constraint.
        components: number of mixture components.
        parameters: number of parameters per component.
        gate: widths of the gate's hidden layers, a module, or a function that makes one from its input and output
            widths.
        dropout: probability of dropout in the gate.
        device: where the parameters live.
        dtype: type of the parameters.
        known: number of parameters of a component over known states; 0 for none.
    """

    _first_bias: Tensor | None = None

    def __init__(
        self,
        in_features: int,
        plans: CircuitPlans,
        *,
        components: int,
        parameters: int,
        gate: GateLike,
        dropout: float,
        device: Any,
        dtype: torch.dtype | None,
        known: int = 0,
    ) -> None:
        super().__init__()
        self.plans = plans
        self._num_known = known
        self.in_features = positive(in_features, "in_features")
        self.components, self.num_parameters = components, parameters
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
            raise ValueError(f"dropout must be a number from 0 to below 1, not {dropout!r}")
        if isinstance(gate, nn.Module) or callable(gate):
            if dropout:
                raise ValueError("dropout= is for the layer's own gate: put nn.Dropout into yours instead")
            made = gate if isinstance(gate, nn.Module) else gate(in_features, self.num_gate_outputs)
            if not isinstance(made, nn.Module):
                raise TypeError(f"gate must return an nn.Module, not {type(made).__name__}")
            self.gate = made.to(device=device, dtype=dtype)
            return
        options = {"dropout": dropout, "device": device, "dtype": dtype}
        self.gate = Gate(in_features, self.num_gate_outputs, hidden_sizes(gate, _GATES), **options)
        self._begin_uniform()

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self.plans.circuit

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.circuit.labels

    @property
    def num_gate_outputs(self) -> int:
        """Width of the gate's output: the parameters of all components, then one mixing logit per component.

        Parameter w of component c is output w * components + c. A component over known states has one parameter per
        label, after those of the other components, and the last mixing logit. A single component has no mixing logit.
        """
        return sum(self._widths)

    @property
    def _widths(self) -> tuple[int, int, int]:
        """Numbers of gate outputs for the components, for known states, and for mixing."""
        parts = self.components + (self._num_known > 0)
        return self.components * self.num_parameters, self._num_known, parts if parts > 1 else 0

    def reset_parameters(self) -> None:
        """Draw new parameters and start close to uniform over the models of the constraint.

        In a gate of your own, every module that has `reset_parameters` is reset; the layer starts at the uniform
        distribution only if the gate ends in an `nn.Linear` with a bias.
        """
        for module in self.gate.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
        if isinstance(self.gate, Gate) or last_linear(self.gate, self.num_gate_outputs) is not None:
            self._begin_uniform()

    def start_at(
        self,
        y: Any,
        given: Any = None,
        *,
        weight: Any = None,
        smoothing: float = 1.0,
        noise: float = 0.1,
        scale: float = 0.0,
    ) -> Any:
        """Start at the frequencies of training labels instead of the uniform distribution; call it before training.

        The bias of the gate's last layer is set to the (smoothed) maximum-likelihood parameters of y, which are the
        same for all rows. The weights of that layer are multiplied by `scale`; with 0, every row starts at these
        frequencies regardless of its features.

        Args:
            y: label vectors, all within the constraint [rows, labels], or by name.
            given: their inputs [rows, given], or by name, if the constraint has any; one row counts for all.
            weight: how often each row counts [rows]; once by default.
            smoothing: how many observations the uniform distribution over models counts for. It must be positive, since
                a state of probability zero would never be learned.
            noise: standard deviation of the noise that makes components and units differ; not used if there is only
                one.
            scale: factor for the weights of the gate's last layer.

        Returns:
            The layer.

        Raises:
            ValueError: if rows violate the constraint; the message names them. Or if a weight is negative, or a number
                is negative or not finite.
            PropertyError: if the gate is your own and does not end in an `nn.Linear` with a bias.

        Example:
            >>> import torch, semprola as sp
            >>> y = torch.tensor([[1.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]])
            >>> layer = sp.SPL(8, sp.one_hot(["a", "b", "c"])).start_at(y, smoothing=0.01)
            >>> layer(torch.randn(8)).mean.round(decimals=2)
            tensor([0.7500, 0.2500, 0.0000], grad_fn=<RoundBackward1>)
        """
        smoothing = checked_number(smoothing, "smoothing", positive=True)
        noise, scale = checked_number(noise, "noise"), checked_number(scale, "scale")
        labels, inputs = checked_rows(self.plans, y, given)
        start = self._fitted(labels, inputs, checked_weight(weight, len(labels)), smoothing)
        # the uniform start has noise only if there are components or units to make different
        self._begin_at(start, noise if self._start()[1] else 0.0)
        last = last_linear(self.gate, self.num_gate_outputs)
        if last is not None:
            with torch.no_grad():
                last.weight.mul_(scale)
        return self

    @property
    def is_new(self) -> bool:
        """Whether the layer still has its first start, uniform over the models: not trained, loaded or started anew."""
        last = last_linear(self.gate, self.num_gate_outputs)
        if self._first_bias is None or last is None or last.bias.is_meta:
            return False
        bias = last.bias.detach().cpu()
        # a change of type may have rounded it; a step of training changes it by more
        return torch.allclose(bias.double(), self._first_bias.double(), rtol=1e-5, atol=1e-6)

    def _gated(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """Parameters [*batch, components, parameters] and mixing logits [*batch, components] for features z."""
        return split_outputs(self._outputs(z), self.components, self.num_parameters)

    def _outputs(self, z: Tensor) -> Tensor:
        """The gate's output for features z [*batch, num_gate_outputs]."""
        require_tensor(z, self.in_features)
        outputs = self.gate(z)
        if not isinstance(outputs, Tensor) or outputs.shape != (*z.shape[:-1], self.num_gate_outputs):
            got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            expected = (*z.shape[:-1], self.num_gate_outputs)
            raise ValueError(f"the gate returned {got}, but the layer needs {expected}: see layer.num_gate_outputs")
        return outputs.clone() if not isinstance(self.gate, Gate) and shares_memory(self.gate, z, outputs) else outputs

    def _start(self) -> tuple[Tensor, float]:
        """Parameters of the uniform distribution over models [parameters], and the noise to make components differ."""
        raise NotImplementedError

    def _fitted(self, y: Tensor, given: Tensor | None, weight: Tensor, smoothing: float) -> Tensor:
        """Smoothed maximum-likelihood parameters [parameters] of label vectors [rows, labels], weighted [rows]."""
        raise NotImplementedError

    def _begin_uniform(self) -> None:
        self._begin_at(*self._start())
        last = last_linear(self.gate, self.num_gate_outputs)
        self._first_bias = None if last is None or last.bias.is_meta else last.bias.detach().cpu().clone()

    @torch.no_grad()
    def _begin_at(self, start: Tensor, noise: float) -> None:
        """Set the bias of the gate's last layer to the same parameters for every component, with noise."""
        last = last_linear(self.gate, self.num_gate_outputs)
        if last is None:
            raise PropertyError(
                f"the gate does not end in an nn.Linear with a bias and {self.num_gate_outputs} outputs, "
                "so its start cannot be set: add such a layer at its end"
            )
        shape = (self.num_parameters, self.components)
        values = noise * torch.randn(shape, dtype=last.bias.dtype, device=last.bias.device)
        values += start[:, None].to(values)
        last.bias.zero_()
        last.bias[: values.numel()] = values.reshape(-1)


def as_circuit(
    constraint: Source | Split,
    labels: Iterable[str] | None = None,
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
) -> Circuit:
    """The circuit of a constraint, compiled if necessary and checked for use in a layer.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, or the path of a file.
    """
    if isinstance(constraint, Split):
        if not constraint.is_exact:
            raise LabelError("this needs one circuit, but the split has several, or leaves rules out")
        constraint = constraint.circuits[0]
    compiled = isinstance(constraint, Circuit)
    budget: Any = {"timeout": timeout, "max_nodes": max_nodes, "memory": memory}
    circuit = constraint if compiled and labels is None else compile(constraint, labels, **budget)
    if not isinstance(circuit, Circuit) or circuit.num_labels == 0:
        raise LabelError("the constraint has no labels: there is nothing to predict")
    if not circuit.is_decomposable or not circuit.is_deterministic:
        lacking = "decomposable" if not circuit.is_decomposable else "provably deterministic"
        raise PropertyError(f"the circuit is not {lacking}, so its values are not probabilities: recompile it")
    return circuit


def one_name(components: int | None, alias: str, value: int | None) -> int:
    """The number of components, given under either name; 1 by default."""
    if components is not None and value is not None:
        raise ValueError(f"components and {alias} are two names for the same number: pass only one of them")
    if value is not None:
        return positive(value, alias)
    return 1 if components is None else positive(components, "components")
