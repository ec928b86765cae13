"""The pages and notebooks of the examples: written by `python -m experiments examples`, and up to date."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from experiments import example_pages

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", example_pages.TITLES)
def test_the_page_and_the_notebook_are_those_of_the_example(name: str) -> None:
    """`python -m experiments examples` writes both."""
    folder = ROOT / "docs" / "examples"
    assert (folder / f"{name}.md").read_text(encoding="utf-8") == example_pages.page(name)
    assert (folder / f"{name}.ipynb").read_text(encoding="utf-8") == example_pages.notebook(name)
    assert (ROOT / "docs" / "images" / f"example_{name}.png").is_file()


@pytest.mark.parametrize("name", example_pages.TITLES)
def test_the_notebook_is_the_example_in_cells(name: str) -> None:
    content = json.loads(example_pages.notebook(name))
    cells = content["cells"]
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all({"cell_type", "metadata", "source"} <= cell.keys() for cell in cells)
    code = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    for statement in ast.parse(text).body[1:-1]:
        assert ast.get_source_segment(text, statement) in code
