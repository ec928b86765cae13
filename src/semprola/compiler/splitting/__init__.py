"""From a constraint that does not compile as one to several circuits that together state it."""

from semprola.compiler.splitting.split import Split
from semprola.compiler.splitting.splitting import split

__all__ = ["Split", "split"]
