"""A newcomer's path: the README's quick start, copied as it is, then the tutorial, each as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from selection import extensive
from test_docs import ROOT, python_blocks


@pytest.mark.parametrize(
    ("page", "blocks", "shown"),
    [
        ("README.md", 1, ["{'cat': 1.0, 'animal': 1.0, 'dog': 0.0}", "-inf"]),
        extensive(("README.md", 2, ["all 13 labels right: 69 % before, 91 % with the rules"])),
        extensive(("docs/tutorial.md", None, ["predictions break a rule", "best exact match on the held-out rows"])),
    ],
)
def test_the_code_runs_as_a_program(page: str, blocks: int | None, shown: list[str], tmp_path: Path) -> None:
    if blocks == 2:
        pytest.importorskip("sklearn")
    code = python_blocks((ROOT / page).read_text(encoding="utf-8"))[:blocks]
    program = tmp_path / "program.py"
    program.write_text("".join(block.source for block in code), encoding="utf-8")
    done = subprocess.run([sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in shown:
        assert text in done.stdout


def test_the_tutorial_leads_from_the_problem_to_a_model_on_disk() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings[:6] == [
        "The problem",
        "Write the rules",
        "Put the rules into the network",
        "Query the distribution",
        "Train without a loop",
        "Save and load",
    ]
