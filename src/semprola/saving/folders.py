"""`sp.save` and `sp.load`: a model as a folder, readable years later and on another machine, without pickle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from semprola._files import write_atomically
from semprola._version import __version__
from semprola.circuit import Circuit
from semprola.errors import FormatError, SemprolaError
from semprola.saving.describing import build, circuits_of, describe

FORMAT, VERSION = "semprola-model", 1
_INDEX, _WEIGHTS = "model.json", "weights.safetensors"
_WRITING = ".saving-"
_MOST_BYTES = 64 * 2**20
"""Largest size of an index that is read."""


def save(model: Any, folder: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> Path:
    """Save a model to a folder: its weights, its architecture and its constraint.

    The folder holds `weights.safetensors`, `model.json` and one `circuit-N.sp` per constraint. It contains no code.

    Args:
        model: a network of torch's and semprola's layers, or a fitted `SPLClassifier`. For any other module, only the
            weights and circuits are saved; to load it, build the module and pass it to `load`.
        folder: the folder, created if it does not exist. A model already there is replaced.
        metadata: additional plain data to keep.

    Returns:
        The folder.

    Raises:
        FormatError: if the folder holds something else.
        TypeError: if the object is not a model.

    Example:
        >>> import tempfile, semprola as sp
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), sp.SPL(8, "cat -> animal"))
        >>> folder = save(net, tempfile.mkdtemp())
        >>> again = load(folder)
        >>> bool((again(torch.ones(1, 4)).mode == net(torch.ones(1, 4)).mode).all())
        True
    """
    target = Path(folder)
    if target.is_dir() and not (target / _INDEX).is_file() and not all(map(_is_left_over, target.iterdir())):
        raise FormatError(f"{target}: the folder holds something else: choose another, or empty it")
    if target.exists() and not target.is_dir():
        raise FormatError(f"{target}: this is a file, but a model is saved to a folder: choose another name")
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "semprola": __version__}
    network, content["estimator"] = _network_of(model)
    circuits: list[Circuit] = []
    content["network"] = describe(network, circuits)
    content["class"] = type(network).__name__
    if content["network"] is None:
        circuits = circuits_of(network)
    content["metadata"] = metadata or {}
    content["dtype"] = str(next((p.dtype for p in network.parameters()), torch.float32)).removeprefix("torch.")
    weights = _packed(network)
    is_new = not target.exists()
    target.mkdir(parents=True, exist_ok=True)
    try:
        _write(target, content, circuits, weights)
    except BaseException:
        if is_new:  # a full disk must not leave a folder that looks like a model
            shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def load(folder: str | os.PathLike[str], model: nn.Module | None = None) -> Any:
    """Load a model that `save` has written.

    Args:
        folder: the model's folder.
        model: for networks that `save` cannot describe, a module to load the weights into, built like the saved one.

    Returns:
        The network (or the estimator), ready to predict.

    Raises:
        FormatError: if the folder is damaged, was written by a newer version, or does not fit the model; the message
            says which file.

    Example:
        >>> load("nowhere")
        Traceback (most recent call last):
        semprola.errors.FormatError: nowhere: no model here (there is no model.json)
    """
    return load_into(folder, None if model is None else lambda: model)


def load_into(folder: str | os.PathLike[str], make: Callable[[], nn.Module] | None) -> Any:
    """Like `load`, with a function that makes the module, called after the files have been checked."""
    target = Path(folder)
    content = _index(target)
    try:
        circuits = _circuits(target, content)
        weights = _unpacked(target / _WEIGHTS, content["files"][_WEIGHTS])
        model = _built(target, content, circuits) if make is None else make()
        _fill(target, model, weights, circuits)
        if content.get("estimator") is None:
            return model.eval()
        from semprola.sklearn import SPLClassifier

        return SPLClassifier.from_saved(content["estimator"], model.eval(), circuits[0])
    except (SemprolaError, OSError):
        raise
    except ImportError as error:
        raise SemprolaError(f"{target}: {error}") from None
    except Exception as error:  # a damaged file can raise almost anything
        reason = (str(error).splitlines() or [""])[0][:160]
        raise FormatError(f"{target / _INDEX}: damaged ({type(error).__name__}: {reason})") from None


def read_metadata(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Circuit]]:
    """The metadata of a saved model, and its circuits by their digests."""
    target = Path(folder)
    content = _index(target)
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}, {c.digest: c for c in _circuits(target, content)}


def _is_left_over(path: Path) -> bool:
    """Whether a call of `save` that was killed may have left this behind."""
    return path.name.startswith(_WRITING)


def _write(target: Path, content: dict[str, Any], circuits: list[Circuit], weights: bytes) -> None:
    """Write everything beside a model that is already there, and only then replace it."""
    with tempfile.TemporaryDirectory(prefix=_WRITING, dir=target) as name:
        folder = Path(name)
        content["files"] = {_WEIGHTS: _digest(weights)}
        for number, circuit in enumerate(circuits):
            circuit.save(folder / f"circuit-{number}.sp")
            content["files"][f"circuit-{number}.sp"] = _digest((folder / f"circuit-{number}.sp").read_bytes())
        write_atomically(folder / _WEIGHTS, weights)
        write_atomically(folder / _INDEX, json.dumps(content, indent=1).encode())
        for file in (*content["files"], _INDEX):  # the index last: it has the others' digests
            os.replace(folder / file, target / file)


def _circuits(target: Path, content: dict[str, Any]) -> list[Circuit]:
    circuits = []
    for number in range(len(content["files"]) - 1):
        name = f"circuit-{number}.sp"
        _checked(target / name, content["files"].get(name))
        circuits.append(Circuit.load(target / name))
    return circuits


def _network_of(model: Any) -> tuple[nn.Module, dict[str, Any] | None]:
    """The network to save, and the rest of an estimator's state."""
    if isinstance(model, nn.Module):
        return model, None
    if not hasattr(model, "saved_state"):
        raise TypeError(f"save takes a torch module or an SPLClassifier, not {type(model).__name__}")
    state: dict[str, Any] = model.saved_state()
    network: nn.Module = model.network_
    return network, state


def _built(target: Path, content: dict[str, Any], circuits: list[Circuit]) -> nn.Module:
    if content["network"] is None:
        name = str(content.get("class"))[:80]
        raise FormatError(f"{target}: a {name}, which only your program can build: use load(folder, model={name}(...))")
    dtype = getattr(torch, content["dtype"])
    with torch.random.fork_rng(devices=[]):
        return build(content["network"], circuits).to(dtype)


def _fill(target: Path, model: nn.Module, weights: dict[str, Tensor], circuits: list[Circuit]) -> None:
    own = {circuit.digest for circuit in circuits_of(model)}
    if own != {circuit.digest for circuit in circuits}:
        raise FormatError(f"{target}: the model's constraint is not the one that was saved")
    expected = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
    for name in (*expected, *sorted(weights)):
        if name not in weights or name not in expected:
            raise FormatError(
                f"{target}: the model does not fit: {name!r} is {'missing' if name in expected else 'unknown'}"
            )
        if expected[name].shape != weights[name].shape:
            shapes = f"{list(weights[name].shape)} in the file, {list(expected[name].shape)} in the model"
            raise FormatError(f"{target}: the model does not fit: {name!r} has shape {shapes}")
    model.load_state_dict(weights)


def _packed(model: nn.Module) -> bytes:
    tensors = {}
    for name, value in model.state_dict().items():
        if not isinstance(value, Tensor):
            raise FormatError(f"{name!r} is a {type(value).__name__}, but only tensors can be saved")
        tensors[name] = value.detach().cpu().clone().contiguous()
    packed: bytes = _safetensors().save(tensors)
    return packed


def _unpacked(path: Path, digest: str) -> dict[str, Tensor]:
    content = _checked(path, digest)
    try:
        tensors: dict[str, Tensor] = _safetensors().load(content)
        return tensors
    except Exception as error:
        raise FormatError(f"{path}: not a safetensors file ({str(error).splitlines()[0][:100]})") from None


def _index(target: Path) -> dict[str, Any]:
    path = target / _INDEX
    if not path.is_file():
        raise FormatError(f"{target}: no model here (there is no {_INDEX})")
    if path.stat().st_size > _MOST_BYTES:
        raise FormatError(f"{path}: too large for the index of a model")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise FormatError(f"{path}: not JSON") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FormatError(f"{path}: not the index of a semprola model")
    if content.get("version") != VERSION:
        raise FormatError(
            f"{path}: format version {content.get('version')!r:.20}, written by semprola "
            f"{content.get('semprola')!r:.20}; this is semprola {__version__}, which reads version {VERSION}"
        )
    files = content.get("files")
    if not isinstance(files, dict) or _WEIGHTS not in files:
        raise FormatError(f"{path}: damaged (it does not list the files of the model)")
    return content


def _checked(path: Path, digest: Any) -> bytes:
    """The contents of a file, checked against the digest in the index."""
    if not path.is_file():
        raise FormatError(f"{path}: missing")
    content = path.read_bytes()
    if _digest(content) != digest:
        raise FormatError(f"{path}: damaged, or from another model (its SHA-256 does not match)")
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _safetensors() -> Any:
    try:
        from safetensors import torch as safetensors
    except ImportError:
        raise SemprolaError("model folders need safetensors: pip install 'semprola[safetensors]'") from None
    return safetensors
