"""A newcomer's path: the README's quick start, copied as it is, then the tutorial, each as a program of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from selection import extensive
from test_docs import ROOT, python_blocks


@pytest.mark.parametrize(
    ("page", "blocks", "shown"),
    [
        ("README.md", 1, ["all 13 labels right, before: 69 %", "all 13 labels right, with the rules: 91 %"]),
        extensive(("README.md", 2, ["{'cat': 1, 'animal': 1, 'dog': 0}", "-inf"])),
        extensive(("docs/tutorial.md", None, ["layer: 100.0 % of the predictions obey the rules"])),
        extensive(("docs/howto_logits.md", None, ["plain: rows all right 68.5%", "rules: rows all right 91.3%"])),
    ],
)
def test_the_code_runs_as_a_program(page: str, blocks: int | None, shown: list[str], tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    code = python_blocks((ROOT / page).read_text(encoding="utf-8"))[:blocks]
    program = tmp_path / "program.py"
    program.write_text("".join(block.source for block in code), encoding="utf-8")
    done = subprocess.run([sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in shown:
        assert text in done.stdout


def test_the_tutorial_shows_a_gain() -> None:
    """Plain network, penalty, layer: shares of test rows that are all right, as the page shows them."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^([\w ,]+): all labels right in (\d+\.\d) % of the test rows$", text, re.MULTILINE))
    assert list(shown) == ["plain network", "penalty", "layer", "plain network, with rules added"]
    plain, penalty, layer, added = map(float, shown.values())
    assert min(layer, added) > max(plain, penalty) + 5
