"""docs/design.md walks one formula to one prediction: every file that it names is there, is named once, and runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from test_docs import ROOT, python_blocks

import semprola as sp

PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PACKAGE = Path(sp.__file__).resolve().parent
WALK = PAGE[PAGE.index("## From a formula to a prediction") : PAGE.index("## Rules that are not small")]


def test_files_exist() -> None:
    for name in re.findall(r"`([\w/]+/[\w/]*(?:\.py)?)`", PAGE):
        assert (PACKAGE / name).exists(), f"docs/design.md names {name}"


def test_the_walk_names_each_file_once_and_each_of_them_runs() -> None:
    named = re.findall(r"`([\w/]+\.py)`", WALK)
    assert len(named) > 20  # of parsing, compiling, the layer, its distribution and the query
    assert len(named) == len(set(named))
    missing = set(named) - _files_that_run()
    assert not missing, f"docs/design.md names {sorted(missing)}, which the example does not reach"


def _files_that_run() -> set[str]:
    """The files of the package in which the example of the page calls a function, in a process without any caches."""
    (block,) = python_blocks(WALK)
    code = block.source.replace("sp.compile(rules)", "sp.compile(rules, cache=False)")
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    paths = (Path(line).resolve() for line in done.stdout.splitlines())
    return {path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE)}


WATCHED = """
import torch
import sys
seen = set()
def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        seen.add(frame.f_code.co_filename)
sys.setprofile(watch)
exec(compile(sys.argv[1], "design.md", "exec"))
sys.setprofile(None)
print(*seen, sep="\\n")
"""
