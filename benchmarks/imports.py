"""How long `import semprola` takes compared with `import torch`, in separate processes that take turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

_PROGRAMS = {"torch": "import torch", "semprola": "import torch, semprola; semprola.SPL"}


def measure(rounds: int = 7) -> dict[str, Any]:
    """Median processor milliseconds of a process that imports each, minus those of one that imports nothing.

    All modules are already compiled, as in an installed package.

    Args:
        rounds: number of processes of each kind.
    """
    programs = {"nothing": "pass", **_PROGRAMS}
    times: dict[str, list[float]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as folder:
        variables = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        variables["PYTHONPYCACHEPREFIX"] = folder
        for index in range(rounds + 1):
            for name, program in programs.items():
                started = _spent()
                subprocess.run([sys.executable, "-c", program], check=True, env=variables)
                if index:  # the first round compiles modules and reads files that are not cached yet
                    times[name].append(_spent() - started)
    start = statistics.median(times["nothing"])
    return {name: 1e3 * (statistics.median(times[name]) - start) for name in _PROGRAMS} | {"rounds": rounds}


def _spent() -> float:
    """Processor seconds of all child processes so far."""
    now = os.times()
    return now.children_user + now.children_system


if __name__ == "__main__":
    found = measure()
    shown = ", ".join(f"{name} {found[name]:.0f} ms" for name in _PROGRAMS)
    print(f"{shown}: {found['semprola'] / found['torch']:.2f}x")
