"""Where a figure comes from (the command, the versions, the commit), and JSON files that are written atomically."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from semprola._files import write_atomically
from semprola._version import __version__
from semprola.errors import FormatError

_PACKAGES = ("torch", "numpy", "networkx")


def provenance(command: str | None = None) -> dict[str, Any]:
    """What is needed to repeat a run, apart from seeds and settings.

    Args:
        command: the command line to record; by default the running one, without absolute folders.

    Returns:
        The command, the versions of Python and packages, and the commit if there is one. Nothing in it identifies the
        machine or its users.
    """
    return {
        "command": command if command is not None else _command(),
        "semprola": __version__,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "commit": _loaded_commit(),
    }


@functools.cache
def _loaded_commit() -> str | None:
    """The commit when it is first asked for: later ones are not in the code that this process has loaded."""
    return source_commit(Path(__file__).resolve().parent)


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, with one line per entry and per run."""
    entries = []
    for name, value in content.items():
        text = json.dumps(value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
        entries.append(f"{json.dumps(name)}: {text}")
    data = ("{\n" + ",\n".join(entries) + "\n}\n").encode()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a results file.

    Raises:
        FormatError: if it is not JSON, or not an object.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(content, dict):
        raise FormatError(f"{path}: expected a JSON object")
    return content


def _command() -> str:
    """The running command; absolute paths are cut to their last part, which is the same on every machine."""
    first = Path(sys.argv[0])
    module = getattr(sys.modules.get("__main__"), "__spec__", None)
    words = ["python", "-m", module.name.removesuffix(".__main__")] if module is not None else [first.name]
    words += [Path(word).name if os.path.isabs(word) else word for word in sys.argv[1:]]
    return " ".join(words)


def source_commit(folder: Path) -> str | None:
    """The commit of a source tree; None outside a repository.

    It is marked if tracked files differ from it, but for results and the pages that are made from them: a campaign
    writes these while it runs.
    """
    source = ["--", ":/", ":(top,exclude)results", ":(top,exclude)docs"]
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", *source)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changed else commit


def _git(folder: Path, *words: str) -> str:
    found = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    return found.stdout.strip()
