"""Semantic probabilistic layers: neural networks whose predictions obey the rules.

A formula, a family or a file states what must hold. `compile` turns it into a circuit. A layer puts the circuit at the
end of a network and returns a distribution whose support is exactly the label vectors that satisfy the constraint.

The public names are in `_public`. They are imported on first use, because torch takes seconds to load and
`semprola --help` does not need it.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from semprola._version import __version__ as __version__

_OPTIONAL = ("export", "lightning", "sklearn")
"""Modules that need an extra or are slow to import; they are imported on first use."""

if TYPE_CHECKING:
    from semprola import export as export
    from semprola import lightning as lightning
    from semprola import sklearn as sklearn
    from semprola._public import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Called by Python for names that the module does not have yet."""
        if name == "__all__":
            return _load().__all__
        if name in _OPTIONAL:
            return importlib.import_module(f"semprola.{name}")
        if name.startswith("_") or name not in _load().__all__:
            raise AttributeError(f"module 'semprola' has no attribute {name!r}")
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *_load().__all__})


def _load() -> Any:
    """Import everything and copy the public names into this module, so that later uses cost nothing."""
    public = importlib.import_module("semprola._public")
    globals().update({name: getattr(public, name) for name in public.__all__})
    return public


if "torch" in sys.modules:
    # torch is loaded anyway, and programs saved by torch.export need our operators
    _load()
