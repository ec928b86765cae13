"""The first ten minutes of a new user, in a fresh environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.extensive
def test_from_a_fresh_environment_to_consistent_predictions(tmp_path: Path) -> None:
    """`pip install .[cli]`, `semprola train`, `semprola predict`, and the estimator in a pipeline.

    Two things are done to save minutes. The fresh environment sees the packages that this one has, so that pip finds
    torch and the others there instead of fetching them (it may not use an index, so everything `cli` asks for must be
    among them). And the native module is left out, which the package can do without. `make wheel` takes neither
    shortcut: it fetches everything, and tries the native module.
    """
    for module in ("typer", "rich", "safetensors", "sklearn", "setuptools"):
        pytest.importorskip(module)
    source = tmp_path / "project"
    trash = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=trash)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    fresh = tmp_path / "fresh"
    run(sys.executable, "-m", "venv", "--without-pip", str(fresh))
    python = fresh / ("Scripts" if os.name == "nt" else "bin") / "python"
    variables = {"base": str(fresh), "platbase": str(fresh)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    packages.joinpath("of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(str(python), "-m", "pip", "install", "--no-index", "--no-build-isolation", f"{source}[cli]")
    said = run(str(python), str(ROOT / "tests" / "wheels" / "smoke.py"))
    assert "every prediction obeys the rules" in said


def run(*words: str) -> str:
    """The output of a command that knows nothing of this checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SEMPROLA_NO_NATIVE": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout
