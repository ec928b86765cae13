"""Semantic probabilistic layers: neural networks whose predictions obey the rules.

A formula, a family or a file states what must hold. `compile` turns it into a circuit. A layer puts the circuit at the
end of a network and returns a distribution whose support is exactly the label vectors that satisfy the constraint.

The public names are in `_public`. They are imported on first use, because torch takes seconds to load and
`semprola --help` does not need it.
"""

from typing import TYPE_CHECKING
from typing import Any as _Any

from semprola._version import __version__ as __version__

_OPTIONAL = ("export", "lightning", "sklearn")
"""Modules that need an extra or are slow to import; they are imported on first use."""

if TYPE_CHECKING:
    from semprola import export as export
    from semprola import lightning as lightning
    from semprola import sklearn as sklearn
    from semprola._public import *  # noqa: F403
else:

    def __getattr__(name: str) -> _Any:
        """Called by Python for names that the module does not have yet."""
        import importlib

        if name in _OPTIONAL:
            return importlib.import_module(f"semprola.{name}")
        if not name.startswith("_") or name == "__all__":
            public = _load()
            if name in globals():
                return globals()[name]
            from semprola._moved import moved

            return moved("semprola", public.MOVED)(name)
        raise AttributeError(f"module 'semprola' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*_load().__all__, *_OPTIONAL, *(name for name in globals() if name.startswith("__"))})


def _load() -> _Any:
    """Import everything and copy the public names into this module, so that later uses cost nothing."""
    import importlib

    public = importlib.import_module("semprola._public")
    if "__all__" not in globals():
        globals().update({name: getattr(public, name) for name in ("__all__", *public.__all__)})
    return public


def _is_torch_loaded() -> bool:
    import sys

    return "torch" in sys.modules


if _is_torch_loaded():
    # programs saved by torch.export need our operators
    _load()
