"""Errors of the library in the words of the command line: options instead of arguments of Python, files in words."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable
from pathlib import Path

_ADVICE = {
    "split": re.compile(r"split the constraint: sp\.split\(rules\), or "),
    "backend": re.compile(r", or try backend='auto'"),
}
"""What only commands with this option can follow."""
_PYTHON = {
    "sp.split(rules)": "--split",
    "skip_inconsistent=True": "--skip-inconsistent",
}


def in_words(error: BaseException, options: Iterable[str]) -> str:
    """The message of an error for people who typed a command."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return _of_file(error)
    first, *rest = str(error).split("\n")  # what follows the first line is the user's own text
    known = {*options}
    for needed, advice in _ADVICE.items():
        first = first if needed in known else advice.sub("", first)
    for python, shell in _PYTHON.items():
        if shell.removeprefix("--").replace("-", "_") in known:
            first = first.replace(python, shell)
    for name in sorted(known, key=len, reverse=True):
        option = "--" + name.replace("_", "-")
        # a label may be called like an option: "(labels=1)" is left as it is
        value = r"'?([\w.:-]+)'?" if "_" in name else r"'([^']+)'"
        first = re.sub(rf"(?<![\w-]){name}={value}", rf"{option} \1", first)
        first = re.sub(rf"(?<![\w-]){name}=(?![\w'])", option, first)
        first = re.sub(rf"^{name}(?= (?:must|takes|has to)\b|:)", option, first)
    return "\n".join([first, *rest])


def _of_file(error: OSError) -> str:
    place = Path(str(error.filename))
    if error.errno == errno.ENOENT and error.strerror == "No such file or directory":
        close = difflib.get_close_matches(place.name, _beside(place), 1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        return f"{place}: no such file{hint}"
    reason = str(error.strerror)
    return f"{place}: {reason[:1].lower()}{reason[1:]}"


def _beside(place: Path) -> list[str]:
    try:
        return [other.name for other in place.parent.iterdir()]
    except OSError:
        return []
