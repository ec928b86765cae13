"""Builds the unit tests of the C++ code, where there is a compiler, and runs them on the library that is in use."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from semprola._library import open_library

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "native-tests"


@pytest.fixture(scope="module")
def unit_tests() -> Path:
    """The program, made anew where a source has changed."""
    for tool in ("make", os.environ.get("CXX", "g++")):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    made = subprocess.run(
        ["make", "-j2", f"BUILD={BUILD}"], cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert made.returncode == 0, made.stdout
    return BUILD / "unit_tests"


@pytest.mark.parametrize(
    "part",
    ["plan", "kernels", "rank", "sample", "memory", "workers", "scratch", "threads", "compiler", "cache", "order"],
)
def test_native_code(unit_tests: Path, part: str) -> None:
    library = open_library()
    if library is None:
        pytest.skip("semprola was built without its native module")
    run = subprocess.run([unit_tests, library._name, part], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_native_test_is_run() -> None:
    """Each name begins with a word that the list above has."""
    parts = test_native_code.pytestmark[0].args[1]
    names = [
        line.removeprefix("TEST(").partition(")")[0]
        for path in HERE.glob("test_*.cpp")
        for line in path.read_text().splitlines()
        if line.startswith("TEST(")
    ]
    assert names
    assert [name for name in names if not any(part in name for part in parts)] == []
