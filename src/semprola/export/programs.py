"""`export.module`, `program`, `save_program` and `onnx`: a network with its layer and one query, ready to ship."""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from semprola._files import write_atomically
from semprola._version import __version__
from semprola.compiler.splitting import Split
from semprola.errors import SemprolaError
from semprola.export.queries import Query
from semprola.nn import SPL, ConstraintLayer, ProductSPL
from semprola.nn.gate import split_outputs
from semprola.nn.standardize import Standardize
from semprola.sequences import SequenceSPL
from semprola.sequences.export import SequenceQuery

_OPSET = 18
METADATA = "semprola.json"
"""The name of a saved program's extra file with information about the layer."""


def module(model: Any, what: str = "mode") -> nn.Module:
    """A network and one query as a module of standard torch operators that returns a tensor, for use with any exporter.

    Args:
        model: a network that returns its layer's distribution, such as ``nn.Sequential(..., sp.SPL(...))``; or a fitted
            `SPLClassifier`.
        what: "mode", "mean", "log_prob", or "hamming" for ``decode("hamming")``.

    Returns:
        A module that takes inputs x, and for "log_prob" also label vectors y [batch, labels] (or tags
        [batch, positions]).

    Raises:
        SemprolaError: if the layer or the query cannot be exported, or the network does not return such a distribution.

    Example:
        >>> import semprola as sp
        >>> module(sp.SPL(4, sp.one_hot(["a", "b"])), "mode")(torch.ones(3, 4)).sum(1)
        tensor([1., 1., 1.])
    """
    return _plain(_network_of(model), what)


def program(
    model: Any, what: str = "mode", *, example: Any = None, any_length: bool = False
) -> torch.export.ExportedProgram:
    """A network as a `torch.export` program of standard operators, for any batch size.

    The program takes inputs x (and for "log_prob" also label vectors y) and returns a tensor. It can be saved with
    ``torch.export.save`` and loaded where semprola is not installed.

    Args:
        model: a network that returns its layer's distribution, such as ``nn.Sequential(..., sp.SPL(...))``; or a fitted
            `SPLClassifier`.
        what: "mode", "mean", "log_prob", or "hamming" for ``decode("hamming")``.
        example: inputs x of a batch of two or more rows, needed if the network does not begin with a layer of known
            input width. With a `SequenceSPL`, it also determines the program's number of positions.
        any_length: with a `SequenceSPL`, also take shorter sequences than the example's, in batches of equal length.
            The second dimension of x must be the positions. Short sequences take as long as the example's.

    Raises:
        SemprolaError: if the layer or the query cannot be exported, or the network does not return such a distribution.

    Example:
        >>> import semprola as sp
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), sp.SPL(8, "cat -> animal"))
        >>> run = program(net, "mean").module()
        >>> torch.allclose(run(torch.ones(7, 4)), net(torch.ones(7, 4)).mean)
        True
    """
    made, inputs = _prepared(model, what, example, any_length)
    shapes = _shapes(inputs, any_length)
    with torch.no_grad(), _quiet():
        return torch.export.export(made, inputs, dynamic_shapes=shapes)


def save_program(
    model: Any,
    path: str | os.PathLike[str],
    what: str = "mode",
    *,
    example: Any = None,
    constraint: Any = None,
    any_length: bool = False,
) -> Path:
    """Save a network as a `torch.export` file, with its labels and its constraint.

    ``torch.export.load(path, extra_files=extra)`` loads it where semprola is not installed. With
    ``extra = {"semprola.json": ""}`` it also reads what the file says about the layer: the labels (or tags), the digest
    of the constraint's circuit (or of the rules' automaton) and, if given, the constraint's text.

    Args:
        model: as for :func:`program`.
        path: where to write; should end in .pt2.
        what: "mode", "mean", "log_prob", or "hamming" for ``decode("hamming")``.
        example: as for :func:`program`.
        constraint: a formula or its text, to store in the file.
        any_length: as for :func:`program`.

    Returns:
        The path.

    Raises:
        SemprolaError: if the layer or the query cannot be exported, or the network does not return such a distribution.
    """
    made = program(model, what, example=example, any_length=any_length)
    metadata = _metadata(model, _plain(_network_of(model), what), what, constraint)
    with _quiet():
        extra: dict[str, Any] = {METADATA: json.dumps(metadata)}
        write_atomically(path, lambda file: torch.export.save(made, file, extra_files=extra))
    return Path(path)


def onnx(
    model: Any,
    path: str | os.PathLike[str],
    what: str = "mode",
    *,
    example: Any = None,
    constraint: Any = None,
    any_length: bool = False,
) -> Path:
    """Write a network as an ONNX file of standard operators, for any batch size. Needs the extra `onnx`.

    Inputs are called "x" (and "y" for "log_prob"); the output has the name of the query. The file's metadata holds the
    labels (or tags), the digest of the constraint's circuit (or of the rules' automaton) and, if given, the
    constraint's text.

    Args:
        model: as for :func:`program`.
        path: where to write; should end in .onnx.
        what: "mode", "mean", "log_prob", or "hamming" for ``decode("hamming")``.
        example: as for :func:`program`.
        constraint: a formula or its text, to store in the file.
        any_length: as for :func:`program`.

    Returns:
        The path.

    Raises:
        SemprolaError: if the layer or the query cannot be exported, or onnx is not installed.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise SemprolaError("writing ONNX files needs onnx and onnxscript: pip install 'semprola[onnx]'") from None
    made, inputs = _prepared(model, what, example, any_length)
    names = ["x", "y"][: len(inputs)]
    shapes = _shapes(inputs, any_length)
    with torch.no_grad(), _quiet():
        written = torch.onnx.export(
            made, inputs, dynamo=True, input_names=names, output_names=[what], dynamic_shapes=shapes,
            opset_version=_OPSET, verbose=False,
        )  # fmt: skip
    if written is None:
        raise SemprolaError("torch's ONNX exporter returned no program")
    proto = written.model_proto
    for key, value in _metadata(model, made, what, constraint).items():
        proto.metadata_props.add(key=key, value=value)
    write_atomically(path, proto.SerializeToString())
    return Path(path)


class _Exported(nn.Module):
    """A network whose layer returns its parameters, followed by the query."""

    def __init__(self, body: nn.Module, query: Query) -> None:
        super().__init__()
        self.body, self.query = body, query

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        parameters, mixing = self.body(x)
        answer: Tensor = self.query(parameters, mixing, y)
        return answer

    def example_of_y(self, x: Tensor) -> Tensor:
        """Label vectors to trace the network with."""
        return torch.zeros((len(x), self.query.labels), dtype=torch.float32, device=x.device)

    def metadata(self) -> dict[str, str]:
        """Labels and hash of the circuit, for files."""
        circuit = self.query.plans.circuit
        return {"labels": json.dumps(list(circuit.labels)), "circuit_digest": circuit.digest}


class _Parameters(nn.Module):
    """Replaces a layer; returns the parameters of its distribution instead of the distribution."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.gate = layer.gate if isinstance(layer, SPL | ProductSPL) else nn.Identity()
        self.components = layer.components if isinstance(layer, SPL | ProductSPL) else 1
        self.parameters_each = layer.num_parameters if isinstance(layer, SPL | ProductSPL) else 0

    def forward(self, z: Tensor, given: Any = None) -> tuple[Tensor, Tensor | None]:
        outputs = self.gate(z)
        return split_outputs(outputs, self.components, self.parameters_each)


def _prepared(
    model: Any, what: str, example: Any, any_length: bool
) -> tuple[_Exported | SequenceQuery, tuple[Tensor, ...]]:
    """The module to trace, and inputs to trace it with."""
    network = _network_of(model)
    made = _plain(network, what)
    x = _example(network, example)
    if any_length:
        if not isinstance(made, SequenceQuery):
            raise SemprolaError("any_length is for networks that end in a SequenceSPL")
        positions = _positions(made, x)
        if x.shape[1] != positions:
            raise SemprolaError(
                f"any_length needs the positions in the second dimension of x, but x is {list(x.shape)} and the layer "
                f"has {positions} positions"
            )
        made = SequenceQuery(network, what, positions)
    return made, ((x, made.example_of_y(x)) if what == "log_prob" else (x,))


@torch.no_grad()
def _positions(made: SequenceQuery, x: Tensor) -> int:
    """How many positions the layer of a tagger sees."""
    return int(made.body(x).event_shape[0])


def _shapes(inputs: tuple[Tensor, ...], any_length: bool) -> tuple[dict[int, Any], ...]:
    """Which dimensions of the inputs are free."""
    free: dict[int, Any] = {0: torch.export.Dim("batch", min=1)}
    if any_length and inputs[0].shape[1] > 1:
        free[1] = torch.export.Dim("positions", min=1, max=int(inputs[0].shape[1]))
    return tuple(free for _ in inputs)


def _network_of(model: Any) -> nn.Module:
    network = getattr(model, "network_", model)
    if not isinstance(network, nn.Module):
        raise SemprolaError(f"export takes a torch module or a fitted SPLClassifier, not {type(model).__name__}")
    return network if network is model else copy.deepcopy(network).float()


def _plain(network: nn.Module, what: str) -> _Exported | SequenceQuery:
    layers = (SPL, ProductSPL, ConstraintLayer, SequenceSPL)
    if any(isinstance(getattr(module, "split", None), Split) for module in network.modules()):
        raise SemprolaError("a layer over a split cannot be exported: it searches for its predictions")
    found = [(name, m) for name, m in network.named_modules() if isinstance(m, layers)]
    if len(found) != 1:
        raise SemprolaError(f"export takes a network with one constrained layer, but this one has {len(found)}")
    name, layer = found[0]
    if isinstance(layer, SequenceSPL):
        return SequenceQuery(network, what)
    query = Query(layer, what)
    body = copy.deepcopy(network)
    if not name:
        return _Exported(_Parameters(body), query).eval()
    owner, _, attribute = name.rpartition(".")
    setattr(body.get_submodule(owner), attribute, _Parameters(body.get_submodule(name)))
    return _Exported(body, query).eval()


def _example(network: nn.Module, example: Any) -> Tensor:
    like = next(network.parameters(), torch.zeros(1))
    if example is not None:
        x = torch.as_tensor(example)
        if x.dim() < 2 or len(x) < 2:
            raise SemprolaError(f"example must be a batch of two or more rows, not {list(x.shape)}")
        return x
    first = network
    while isinstance(first, nn.Sequential) and len(first):
        first = first[0]
    width = getattr(first, "features", None) if isinstance(first, Standardize) else getattr(first, "in_features", None)
    if isinstance(first, ConstraintLayer):
        width = first.circuit.num_labels
    if not isinstance(width, int) or any(isinstance(module, SequenceSPL) for module in network.modules()):
        raise SemprolaError(f"the input shape of {type(first).__name__} is unknown: pass example=")
    return torch.zeros((3, width), dtype=like.dtype, device=like.device)


def _metadata(model: Any, made: _Exported | SequenceQuery, what: str, constraint: Any) -> dict[str, str]:
    """What a file says about the layer."""
    return {"semprola": __version__, "query": what, **made.metadata(), "constraint": _text_of(model, constraint)}


def _text_of(model: Any, constraint: Any) -> str:
    if constraint is None and hasattr(model, "network_"):
        constraint = model.constraint
    if isinstance(constraint, str):
        return constraint
    return "" if constraint is None else str(constraint)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' warnings and logs about their own internals."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
