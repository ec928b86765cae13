"""The pages of the examples, and the same as notebooks: `python -m experiments examples [--pictures]`.

A page has what an example says about itself, what it prints (`python -m benchmarks.examples` keeps it in
results/examples.json), a picture and the code. `--pictures` draws the pictures again, which trains a little.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import example_pictures
from experiments.pictures import save
from experiments.provenance import read_json
from semprola._files import write_atomically
from semprola.comparison.report import read_report

ROOT = Path(__file__).resolve().parent.parent
TITLES = {
    "digit_facts": "Digits and facts about them",
    "visual_sudoku": "Sudokus from pictures",
    "phenotype_codes": "Codes of an ontology from phrases",
    "nurse_roster": "Nurse rosters",
    "weak_labels": "Few labels and many hints",
    "two_networks": "Two networks, one rule",
    "noisy_queens": "Queens from noisy sensors",
    "tag_names": "Names in sentences",
    "compare_digits": "All methods on digits",
    "compare_smokers": "All methods on smokers and friends",
}
_COLUMNS = {
    "phenotype_codes": ["all groups right", "groups right", "consistent"],
    "weak_labels": ["all labels right"],
    "two_networks": ["left", "right", "both", "both, sum told"],
    "tag_names": ["tags right", "valid"],
    "compare_digits": ["exact match", "consistent"],
    "compare_smokers": ["exact match", "consistent"],
}
"""The columns of figures that a picture shows, of examples that are not drawn by a function of their own."""

_SHOWN = "drawn = io.BytesIO()\n{}(SimpleNamespace(**globals())).savefig(drawn, dpi=100)\nImage(drawn.getvalue())"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all pages and notebooks; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments examples", description=__doc__)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder with the pages")
    parser.add_argument("--pictures", action="store_true", help="draw the pictures again")
    options = parser.parse_args(arguments)
    for name in TITLES:
        if options.pictures:
            save(picture(name), options.docs / "images" / f"example_{name}.png")
        for suffix, text in ((".md", page(name)), (".ipynb", notebook(name))):
            write_atomically(options.docs / "examples" / f"{name}{suffix}", text.encode())
    return 0


def page(name: str) -> str:
    """The Markdown of a page."""
    about, code = _parts(name)
    alt = inspect.getdoc(example_pictures.DRAWN[name]) if name in example_pictures.DRAWN else "The figures, as bars."
    return "\n".join(
        [
            f"# {TITLES[name]}", "", about, "", f"![{alt}](../images/example_{name}.png)", "",
            f"Run it with `python examples/{name}.py`, or as a {{download}}`notebook <{name}.ipynb>`.", "",
            "## What it prints", "", "```output", *printed(name), "```", "", "## The code", "",
            f"```{{literalinclude}} ../../examples/{name}.py", ":language: python", f":lines: {_first_line(code)}-",
            "```", "",
        ]
    )  # fmt: skip


def notebook(name: str) -> str:
    """The example as a Jupyter notebook, with what it prints."""
    about, code = _parts(name)
    run = f'import sys\n\nsys.argv = ["{name}"]  # options follow, as on the command line\nmain()'
    cells = [_text(f"# {TITLES[name]}\n\n{about}"), *(_code(cell) for cell in _cells(code)), _code(run, printed(name))]
    if name in example_pictures.DRAWN:
        source = inspect.getsource(example_pictures.DRAWN[name])
        head = (
            "import io\nfrom types import SimpleNamespace\nfrom typing import Any\n\nfrom IPython.display import Image"
        )
        cells.append(_code(f"{head}\n\n\n{source}\n\n{_SHOWN.format(name)}"))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def picture(name: str) -> Any:
    """The picture of a page."""
    if name in example_pictures.DRAWN:
        return example_pictures.DRAWN[name](importlib.import_module(f"examples.{name}"))
    return example_pictures.bars(_percentages(name), _COLUMNS[name])


def printed(name: str) -> list[str]:
    """What an example prints; of a comparison, the table."""
    if name.startswith("compare_"):
        return str(read_report(ROOT / "results" / f"{name}.json")).splitlines()
    lines: list[str] = read_json(ROOT / "results" / "examples.json")["outputs"][name]
    return lines


def _percentages(name: str) -> list[str]:
    """The figures as rows of percentages."""
    if not name.startswith("compare_"):
        return printed(name)
    found = read_report(ROOT / "results" / f"{name}.json")
    rows = [row for row in found.rows if "refused" not in row]
    figures = [[found.mean(row["method"], metric) for metric in ("exact", "consistent")] for row in rows]
    return [f"{row['title']}  {exact:.1f}%  {obey:.1f}%" for row, (exact, obey) in zip(rows, figures, strict=True)]


def _parts(name: str) -> tuple[str, str]:
    """What an example says about itself, without how to run it, and its code."""
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(text)) or ""
    return re.sub(r" `python examples/\w+\.py`\.", "", about), text


def _first_line(code: str) -> int:
    """The line after the docstring and what is empty below it."""
    return ast.parse(code).body[1].lineno


def _cells(code: str) -> list[str]:
    """The code in pieces: what is imported, constants, and each function or class; without the call of `main`."""
    lines, body = code.splitlines(), ast.parse(code).body[1:]
    starts = []
    for before, node in zip([None, *body], body, strict=False):
        first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))]) - 1
        while lines[first - 1].startswith("#"):
            first -= 1
        alone = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if (
            before is None
            or alone
            or isinstance(before, ast.FunctionDef | ast.ClassDef)
            or not lines[first - 1].strip()
        ):
            starts.append(first)
    pieces = ["\n".join(lines[a:b]).strip() for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
    imports = [piece for piece in pieces if re.match(r"(import|from) ", piece)]
    others = [piece for piece in pieces if piece not in imports and not piece.startswith("if __name__")]
    return ["\n\n".join(imports), *others]


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}


def _code(source: str, lines: Sequence[str] = ()) -> dict[str, Any]:
    shown = [{"output_type": "stream", "name": "stdout", "text": [f"{line}\n" for line in lines]}] if lines else []
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": shown,
        "source": source.rstrip().splitlines(keepends=True),
    }  # fmt: skip
