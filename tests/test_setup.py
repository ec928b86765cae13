"""What `make` prints while it sets up: a few lines; the rest is in a log that an error names."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# a Python that has nothing to install: its pip is talkative, and fails when told to
_PYTHON = """#!/bin/sh
case "$*" in
  *"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *pip*) i=0; while [ $i -lt 500 ]; do echo "Collecting package $i"; i=$((i + 1)); done
         if [ -n "$BROKEN" ]; then echo "ERROR: No matching distribution found for torch"; exit 1; fi ;;
  *"-c "*) echo "Installed semprola" ;;
esac
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    if shutil.which("make") is None or os.name != "posix":
        pytest.skip("needs make and a POSIX shell")
    for name in ("Makefile", "pyproject.toml", "setup.py", "pins.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(_PYTHON)
    python.chmod(0o755)
    return tmp_path


def set_up(copy: Path, target: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = ["make", "--no-print-directory", f"PYTHON={copy}/python", target]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(words, cwd=copy, env=clean | environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("folder", [".venv", ".venv-bench"])
def test_set_up_prints_a_few_lines(copy: Path, folder: str) -> None:
    done = set_up(copy, f"{folder}/.installed")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"Setting up {folder}: ")
    assert f"(log: {folder}/install.log)" in lines[0]
    assert lines[1] == "Installed semprola"
    assert "Collecting package 499" in (copy / folder / "install.log").read_text()
    assert set_up(copy, f"{folder}/.installed").stdout.count("\n") <= 1  # nothing to do


def test_an_error_shows_its_end_and_names_the_log(copy: Path) -> None:
    failed = set_up(copy, "demo", BROKEN="1")
    assert failed.returncode != 0
    lines = failed.stdout.splitlines()
    assert len(lines) < 10
    assert "ERROR: No matching distribution found for torch" in lines
    assert lines[-1] == "Set-up failed; the whole log is in .venv/install.log"
    assert not (copy / ".venv" / ".installed").exists()
