"""Pictures: well-formed, complete where they can be, a summary where they cannot."""

from __future__ import annotations

import builtins
import os
import random
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from circuit_cases import diagram, names, random_models

import semprola as sp
from semprola.circuit import Circuit, CircuitBuilder
from semprola.circuit.drawing import MOST_DRAWN, draw

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter(f"{SVG}text")]


def chain(labels: int) -> Circuit:
    """At least one label is true; deep, and as large as one likes."""
    b = CircuitBuilder(names(labels))
    node = b.literal(labels - 1, True)
    for v in range(labels - 2, -1, -1):
        node = b.decision(v, node, b.true())
    return b.build(node)


def odd_names() -> Circuit:
    b = CircuitBuilder(['<a & "b">', "back\\slash\n", "\x00\udc80", "动物", "x" * 60, "$y_1$"], ["input"])
    return b.build(b.product([b.literal(v, v % 2 == 0) for v in range(7)]))


def test_svg_shows_every_node_and_edge(tmp_path: Path) -> None:
    rng = random.Random(0)
    for _ in range(15):
        circuit = diagram(random_models(rng, 5), 5, given=1)
        circuit.draw(tmp_path / "a.svg")
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        signs = int((circuit.child_start[1:] > circuit.child_start[:-1]).sum())
        assert len(list(root.iter(f"{SVG}path"))) == circuit.num_edges + 2 * signs
        assert len(list(root.iter(f"{SVG}rect"))) == circuit.num_nodes + 1
        shown = {f"{'' if x > 0 else '¬'}{circuit.variables[abs(x) - 1]}" for x in circuit.literal.tolist() if x}
        written = {text for text in texts(tmp_path / "a.svg") if "leaves out" not in text}
        assert shown | {"true"} >= written >= shown


def test_boxes_do_not_overlap(tmp_path: Path) -> None:
    rng = random.Random(1)
    for _ in range(10):
        draw(diagram(random_models(rng, 6), 6), tmp_path / "a.svg")
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        boxes = [
            tuple(float(box.get(key, 0)) for key in ("x", "y", "width", "height"))
            for box in root.iter(f"{SVG}rect")
            if box.get("x") is not None
        ]
        for i, (x, y, w, h) in enumerate(boxes):
            assert 0 <= x <= x + w <= width + 1
            assert 0 <= y <= y + h <= height + 1
            for x2, y2, w2, h2 in boxes[:i]:
                assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_odd_names(tmp_path: Path) -> None:
    draw(odd_names(), tmp_path / "a.svg")
    shown = texts(tmp_path / "a.svg")
    assert '<a & "b">' in shown
    assert "¬动物" in shown
    assert "x" * 23 + "…" in shown
    draw(odd_names(), tmp_path / "a.dot")
    dot = (tmp_path / "a.dot").read_text()
    assert r'label="<a & \"b\">"' in dot
    assert r'label="¬back\\slash\n"' in dot


def test_smallest(tmp_path: Path) -> None:
    b = CircuitBuilder(["a"])
    for node, text in ((b.literal(0, False), "¬a"), (b.true(), "true")):
        draw(b.build(node), tmp_path / "a.svg")
        assert texts(tmp_path / "a.svg")[0] == text
        draw(b.build(node), tmp_path / "a.dot")
        assert f'label="{text}"' in (tmp_path / "a.dot").read_text()


def test_a_line_says_what_it_means_to_leave_a_label_out(tmp_path: Path) -> None:
    """Two implications have five models, which a reader can only count if absent means 0."""
    for circuit, note in (
        (sp.compile("(cat -> animal) & (dog -> animal)"), "a label that a branch leaves out is 0"),
        (odd_names(), None),
        (sp.compile("a -> b", labels=["a", "b", "c"]), "may be 0 or 1"),
    ):
        draw(circuit, tmp_path / "a.svg")
        draw(circuit, tmp_path / "a.dot")
        shown = [text for text in texts(tmp_path / "a.svg") if "leaves out" in text]
        assert len(shown) == ("leaves out" in (tmp_path / "a.dot").read_text())
        assert bool(shown) == (note is not None)
        assert note is None or note in shown[0]


def test_notebooks_show_circuits() -> None:
    circuit = chain(3)
    picture = circuit.draw()
    assert picture is not None
    assert picture.svg == picture._repr_svg_() == circuit._repr_svg_()
    assert picture.svg.startswith("<svg")


def test_dot_is_complete(tmp_path: Path) -> None:
    circuit = chain(300)
    draw(circuit, tmp_path / "a.DOT")
    dot = (tmp_path / "a.DOT").read_text()
    assert dot.startswith("digraph circuit {\n")
    assert dot.endswith("}\n")
    assert len(re.findall(r"^  n\d+ \[", dot, re.M)) == circuit.num_nodes
    assert len(re.findall(r"^  n\d+ -> n\d+;$", dot, re.M)) == circuit.num_edges


def test_summary_of_a_large_circuit(tmp_path: Path) -> None:
    circuit = chain(2000)
    assert circuit.num_nodes > MOST_DRAWN
    draw(circuit, tmp_path / "a.svg")
    shown = texts(tmp_path / "a.svg")
    assert shown[0] == f"2,000 labels, {circuit.num_nodes:,} nodes, {circuit.num_edges:,} edges"
    assert "too large to count its models for a picture" in shown or any("e+602 models" in text for text in shown)
    assert any(text.endswith(" sums") for text in shown)
    assert (tmp_path / "a.svg").stat().st_size < 60_000
    totals = [int(text.replace(",", "")) for text in shown[6:] if re.fullmatch(r"[\d,]+", text)]
    assert sum(totals) >= circuit.num_nodes


def test_summary_counts_models(tmp_path: Path) -> None:
    draw(chain(120), tmp_path / "a.svg")
    assert "about 1.33e+36 models" in texts(tmp_path / "a.svg")
    b = CircuitBuilder(names(300))
    overlapping = b.build(b.sum([b.literal(v, True) for v in range(300)]))
    draw(overlapping, tmp_path / "a.svg")
    assert "not decomposable and deterministic: models cannot be counted" in texts(tmp_path / "a.svg")


@pytest.mark.parametrize("make", [odd_names, lambda: chain(4), lambda: chain(300)])
def test_png(tmp_path: Path, make: Any) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (the extra 'plot')")
    draw(make(), tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    assert len(data) > 2000


def test_png_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"semprola\[plot\]"):
        draw(chain(4), tmp_path / "a.png")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a.pdf", "a", "svg"])
def test_other_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"the name must end in \.svg, \.png or \.dot"):
        draw(chain(4), tmp_path / name)
    assert os.listdir(tmp_path) == []
