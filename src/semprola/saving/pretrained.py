"""`save_pretrained`, `push_to_hub` and `from_pretrained` for your own networks."""

from __future__ import annotations

import functools
import inspect
import os
from pathlib import Path
from typing import Any

from torch import nn

from semprola.circuit import Circuit
from semprola.errors import FormatError
from semprola.saving.folders import load_into, read_metadata, save
from semprola.saving.hub import HUB_OPTIONS, fetched, push_to_hub

_KEY = "pretrained"


class Pretrained:
    """A mixin with which your own network can be saved to a folder and rebuilt from it.

    The arguments of the constructor are saved. They must be plain data (numbers, strings, lists, dicts) or compiled
    circuits.

    Example:
        >>> import tempfile, torch, semprola as sp
        >>> class Net(torch.nn.Module, Pretrained):
        ...     def __init__(self, circuit, width=8):
        ...         super().__init__()
        ...         self.body = torch.nn.Linear(4, width)
        ...         self.layer = sp.SPL(width, circuit)
        ...     def forward(self, x):
        ...         return self.layer(self.body(x).relu())
        >>> net = Net(sp.compile(sp.one_hot(["a", "b"])), width=3)
        >>> folder = net.save_pretrained(tempfile.mkdtemp())
        >>> Net.from_pretrained(folder).body.out_features
        3
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the constructor of a subclass remember its arguments."""
        super().__init_subclass__(**options)
        construct = cls.__init__

        @functools.wraps(construct)
        def remembering(self: Any, *args: Any, **kwargs: Any) -> None:
            if "_made_with" not in self.__dict__:  # the constructor of the class itself, not of a base class
                bound = inspect.signature(construct).bind(self, *args, **kwargs)
                self.__dict__["_made_with"] = dict(list(bound.arguments.items())[1:])
            construct(self, *args, **kwargs)

        cls.__init__ = remembering  # type: ignore[method-assign]

    def save_pretrained(self, folder: str | os.PathLike[str]) -> Path:
        """Save the network to a folder; see :func:`semprola.save`.

        Raises:
            FormatError: if an argument of the constructor is neither plain data nor a circuit of the network.
        """
        if not isinstance(self, nn.Module):
            raise TypeError("Pretrained is for torch modules: class Net(nn.Module, Pretrained)")
        found: list[Any] = [getattr(module, "circuit", None) for module in self.modules()]
        circuits = [circuit for circuit in found if isinstance(circuit, Circuit)]
        options = {name: _plain(name, value, circuits) for name, value in self.__dict__["_made_with"].items()}
        return save(self, folder, metadata={_KEY: {"class": type(self).__name__, "options": options}})

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Upload the network to Hugging Face's hub; see :func:`semprola.saving.push_to_hub` for the options."""
        return push_to_hub(self, repo_id, **options)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str], **changes: Any) -> Any:
        """Rebuild the network and load its weights.

        Args:
            name: a folder that `save_pretrained` has written, or "owner/name" on Hugging Face's hub.
            **changes: arguments of the constructor that replace the saved ones; and the options of the hub, see
                :func:`semprola.saving.from_pretrained`.

        Raises:
            FormatError: if the folder is damaged or holds another network.
            SemprolaError: if the hub refuses.
        """
        folder = fetched(name, **{option: changes.pop(option) for option in HUB_OPTIONS if option in changes})
        metadata, circuits = read_metadata(folder)
        found = metadata.get(_KEY)
        if not isinstance(found, dict) or found.get("class") != cls.__name__:
            held = found.get("class") if isinstance(found, dict) else None
            raise FormatError(
                f"{folder}: holds {held or 'a model that save_pretrained did not write'}, not {cls.__name__}"
            )
        options = {name: _restored(value, circuits) for name, value in found["options"].items()}
        make: Any = functools.partial(cls, **{**options, **changes})
        return load_into(folder, make)


def _plain(name: str, value: Any, circuits: list[Circuit]) -> Any:
    if isinstance(value, Circuit):
        digests = [circuit.digest for circuit in circuits]
        if value.digest not in digests:
            raise FormatError(f"the circuit {name!r} is not used by a layer of the network, so it is not saved")
        return {"circuit": value.digest}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(name, part, circuits) for part in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _plain(name, part, circuits) for key, part in value.items()}}
    raise FormatError(f"argument {name!r} is a {type(value).__name__}: only plain data and circuits can be saved")


def _restored(value: Any, circuits: dict[str, Circuit]) -> Any:
    if isinstance(value, list):
        return [_restored(part, circuits) for part in value]
    if isinstance(value, dict):
        if "circuit" in value:
            return circuits[value["circuit"]]
        return {key: _restored(part, circuits) for key, part in value["dict"].items()}
    return value
