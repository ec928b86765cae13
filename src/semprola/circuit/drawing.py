"""Pictures of circuits: the graph of a small one, the shape of a large one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from semprola._files import write_atomically
from semprola._words import count
from semprola.circuit.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.fold import heights
from semprola.circuit.placement import Layout, leaf_name
from semprola.circuit.transforms import gaps

MOST_DRAWN = 200
"""Pictures of circuits with more nodes show a summary; .dot files always contain all nodes."""

_MOST_COUNTED = 5000
_MOST_BARS = 36
_MOST_NAMED = 5
_INK, _EDGE, _GREY = "#24303d", "#a3afbb", "#66727f"
# fill and outline of sums, products, literals, literals of given variables
_SUM_COLOURS, _PRODUCT_COLOURS = ("#e4edfc", "#3b6fd4"), ("#fdeedd", "#d07a22")
_LITERAL_COLOURS, _GIVEN_COLOURS = ("#e3f4e7", "#3c9a5f"), ("#f1e7fa", "#8a56c2")


class Picture:
    """An SVG picture, which notebooks show.

    Attributes:
        svg: its source.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def picture(circuit: Circuit) -> Picture:
    """A picture of the circuit; see :func:`draw`."""
    return Picture(_svg(_scene(circuit)))


def draw(circuit: Circuit, path: str | Path) -> None:
    """Draw a circuit in the format that the suffix names.

    ``.svg`` and ``.png`` show sums as ⊕, products as ⊗ and literals in boxes at the bottom; above 200 nodes, they show
    how many of each lie on each layer. A line at the bottom says what it means if a branch leaves a label out. ``.dot``
    has every node, for Graphviz and similar tools.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".dot":
        data = "".join(f"{line}\n" for line in _dot_lines(circuit)).encode("utf-8", "replace")
    elif suffix in (".svg", ".png"):
        scene = _scene(circuit)
        data = _svg(scene).encode("utf-8", "replace") if suffix == ".svg" else _png(scene)
    else:
        raise ValueError(f"cannot draw to {str(path)!r}: the name must end in .svg, .png or .dot")
    write_atomically(path, data)


# what a picture shows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Curve:
    """A line through points from top to bottom, curved or straight."""

    points: Sequence[tuple[float, float]]
    colour: str = _EDGE
    width: float = 1.2
    straight: bool = False


@dataclass(frozen=True)
class _Box:
    """A box with its centre at (x, y) and corners rounded by `radius`."""

    x: float
    y: float
    width: float
    height: float
    radius: float
    fill: str
    outline: str


@dataclass(frozen=True)
class _Text:
    x: float
    y: float
    text: str
    size: float = 12
    colour: str = _INK
    anchor: str = "middle"
    bold: bool = False


@dataclass
class _Scene:
    width: float
    height: float
    shapes: list[_Curve | _Box | _Text] = field(default_factory=list)


def _scene(circuit: Circuit) -> _Scene:
    return _graph(circuit) if circuit.num_nodes <= MOST_DRAWN else _summary(circuit)


def _graph(circuit: Circuit) -> _Scene:
    """The circuit as a layered graph, the root at the top."""
    names = [leaf_name(circuit, node) for node in range(circuit.num_nodes)]
    widths = [26.0 if name is None else max(26.0, 14 + 7.0 * len(name)) for name in names]
    layout = Layout(circuit, widths)
    right = max(x + w / 2 for x, w in zip(layout.x, layout.widths, strict=True))
    gap = min(120.0, 56 + 0.05 * right)
    margin = 28.0
    top = len(layout.layers) - 1
    points = [(x + margin, margin + (top - layer) * gap) for x, layer in zip(layout.x, layout.layer_of, strict=True)]
    scene = _Scene(right + 2 * margin, top * gap + 2 * margin)
    scene.shapes += [_Curve([points[node] for node in chain]) for chain in layout.chains]
    for node in range(circuit.num_nodes):
        x, y = points[node]
        name = names[node]
        if name is not None:
            literal = int(circuit.literal[node])
            fill, outline = _GIVEN_COLOURS if abs(literal) > circuit.num_labels else _LITERAL_COLOURS
            scene.shapes.append(_Box(x, y, widths[node], 24, 6, "#ffffff" if literal < 0 else fill, outline))
            scene.shapes.append(_Text(x, y, name))
            continue
        product = circuit.kind[node] == PRODUCT
        fill, outline = _PRODUCT_COLOURS if product else _SUM_COLOURS
        scene.shapes.append(_Box(x, y, 26, 26, 13, fill, outline))
        a, b = (5.0, 5.0) if product else (0.0, 7.0)
        for dx, dy in ((a, b), (b, -a)):
            scene.shapes.append(_Curve([(x - dx, y - dy), (x + dx, y + dy)], outline, 2, straight=True))
    note = _left_out(circuit)
    if note:
        scene.shapes.append(_Text(margin, scene.height + 4, note, 11, _GREY, "start"))
        scene.width, scene.height = max(scene.width, 2 * margin + 5.6 * len(note)), scene.height + 24
    return scene


def _left_out(circuit: Circuit) -> str:
    """What it means if a branch leaves a label out; empty if no branch does."""
    is_label = np.arange(circuit.num_variables) < circuit.num_labels
    _, left_out, never_mentioned = gaps(circuit, is_label)
    concerned = np.unique(np.concatenate([left_out, never_mentioned]))
    suppressed = circuit.zero_suppressed[concerned]
    if not len(concerned):
        return ""
    if suppressed.all():
        return "a label that a branch leaves out is 0"
    if not suppressed.any():
        return "a label that a branch leaves out may be 0 or 1"
    free = [circuit.labels[v] for v in concerned[~suppressed]]
    listed = ", ".join(free[:_MOST_NAMED]) + (", …" if len(free) > _MOST_NAMED else "")
    return f"a label that a branch leaves out is 0; {listed} may be 0 or 1"


def _summary(circuit: Circuit) -> _Scene:
    """How many sums, products and literals lie on each layer, the root's at the top."""
    height = heights(circuit.child_start, circuit.children)
    layers = int(height.max()) + 1
    step = -(-layers // _MOST_BARS)
    rows = -(-layers // step)
    colours = {SUM: _SUM_COLOURS[1], PRODUCT: _PRODUCT_COLOURS[1], LITERAL: _LITERAL_COLOURS[1]}
    counts = {kind: np.bincount(height[circuit.kind == kind] // step, minlength=rows) for kind in colours}
    widest = max(int(np.sum(list(counts.values()), axis=0).max()), 1)
    scene = _Scene(760, 170 + rows * 16)
    given = f", {len(circuit.given):,} given" if circuit.given else ""
    title = f"{circuit.num_labels:,} labels{given}, {circuit.num_nodes:,} nodes, {circuit.num_edges:,} edges"
    scene.shapes.append(_Text(30, 32, title, 17, anchor="start", bold=True))
    scene.shapes.append(_Text(30, 58, _models(circuit), 13, anchor="start"))
    x = 30.0
    for kind, name in ((SUM, "sums"), (PRODUCT, "products"), (LITERAL, "literals")):
        text = f"{int(counts[kind].sum()):,} {name}"
        scene.shapes.append(_Box(x + 6, 90, 12, 12, 2, colours[kind], colours[kind]))
        scene.shapes.append(_Text(x + 20, 90, text, 13, anchor="start"))
        x += 52 + 7.2 * len(text)
    scene.shapes.append(_Text(30, 124, f"nodes on each of {layers:,} layers, the root at the top", 12, _GREY, "start"))
    for row in range(rows):
        y = 148 + (rows - 1 - row) * 16
        low, high = row * step, min(layers, (row + 1) * step) - 1
        scene.shapes.append(_Text(92, y, str(low) if low == high else f"{low}–{high}", 10, _GREY, "end"))
        x = 100.0
        for kind, colour in colours.items():
            length = 560 * float(counts[kind][row]) / widest
            if length:
                scene.shapes.append(_Box(x + length / 2, y, length, 11, 0, colour, colour))
            x += length
        scene.shapes.append(_Text(x + 7, y, f"{sum(int(c[row]) for c in counts.values()):,}", 10, _INK, "start"))
    return scene


def _models(circuit: Circuit) -> str:
    """The number of models, if it can be computed quickly and is sure to be right."""
    if circuit.num_nodes > _MOST_COUNTED and "is_deterministic" not in vars(circuit):
        return "too large to count its models for a picture"
    if not (circuit.is_decomposable and circuit.is_deterministic):
        return "not decomposable and deterministic: models cannot be counted"
    return count(circuit.model_count(), "model")


# how a picture is written -------------------------------------------------------------------------------------------


def _svg(scene: _Scene) -> str:
    size = f'width="{scene.width:.0f}" height="{scene.height:.0f}" viewBox="0 0 {scene.width:.1f} {scene.height:.1f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for shape in scene.shapes:
        if isinstance(shape, _Curve):
            path = " ".join(f"{code}{' '.join(f'{x:.1f},{y:.1f}' for x, y in at)}" for code, at in _bezier(shape))
            style = f'fill="none" stroke="{shape.colour}" stroke-width="{shape.width}"'
            lines.append(f'<path d="{path}" {style} stroke-linecap="round"/>')
        elif isinstance(shape, _Box):
            corner = f'x="{shape.x - shape.width / 2:.1f}" y="{shape.y - shape.height / 2:.1f}" rx="{shape.radius}"'
            extent = f'width="{shape.width:.1f}" height="{shape.height:.1f}"'
            lines.append(f'<rect {corner} {extent} fill="{shape.fill}" stroke="{shape.outline}" stroke-width="1.4"/>')
        else:
            weight = ' font-weight="bold"' if shape.bold else ""
            # the baseline of centred text lies about a third of its size below the middle
            place = f'x="{shape.x:.1f}" y="{shape.y + shape.size * 0.35:.1f}" text-anchor="{shape.anchor}"'
            style = f'font-size="{shape.size}" fill="{shape.colour}"{weight}'
            lines.append(f"<text {place} {style}>{escape(shape.text)}</text>")
    return "\n".join([*lines, "</svg>", ""])


def _png(scene: _Scene) -> bytes:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import BoxStyle, Ellipse, FancyBboxPatch, PathPatch
        from matplotlib.path import Path as Outline
    except ImportError:
        raise ImportError("drawing .png files needs matplotlib: pip install 'semprola[plot]', or draw .svg") from None
    codes = {"M": Outline.MOVETO, "L": Outline.LINETO, "C": Outline.CURVE4}
    figure = Figure(figsize=(scene.width / 100, scene.height / 100), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.axis("off")
    style: dict[str, Any]
    points = 0.72  # an inch has 72 points, and 100 of our units
    for order, shape in enumerate(scene.shapes):
        if isinstance(shape, _Curve):
            parts = [(codes[code], point) for code, at in _bezier(shape) for point in at]
            outline = Outline([point for _, point in parts], [code for code, _ in parts])
            style = {"fill": False, "edgecolor": shape.colour, "linewidth": shape.width * points, "capstyle": "round"}
            axes.add_patch(PathPatch(outline, zorder=order, **style))
        elif isinstance(shape, _Box):
            corner = (shape.x - shape.width / 2, shape.y - shape.height / 2)
            style = {"facecolor": shape.fill, "edgecolor": shape.outline, "linewidth": 1.4 * points}
            if 2 * shape.radius >= shape.width:
                axes.add_patch(Ellipse((shape.x, shape.y), shape.width, shape.height, zorder=order, **style))
                continue
            rounded = BoxStyle.Round(pad=0, rounding_size=shape.radius)
            axes.add_patch(FancyBboxPatch(corner, shape.width, shape.height, rounded, zorder=order, **style))
        else:
            align = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            style = {"fontsize": shape.size * points, "color": shape.colour, "ha": align, "va": "center_baseline"}
            weight = "bold" if shape.bold else "normal"
            axes.text(shape.x, shape.y, shape.text, weight=weight, zorder=order, parse_math=False, **style)
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that the font lacks is drawn as an empty box: good enough
        FigureCanvasAgg(figure)
        figure.savefig(buffer, format="png", dpi=min(200.0, 1.6e6 / max(scene.width, scene.height)))
    return buffer.getvalue()


def _bezier(curve: _Curve) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """The path commands M, L and C with their points."""
    points = curve.points
    yield "M", [points[0]]
    # vertical at both ends; parallel to the line between its neighbours at a bend, so that a long edge does not ripple
    slope = [0.0, *((c[0] - a[0]) / (c[1] - a[1]) for a, c in zip(points, points[2:], strict=False)), 0.0]
    for i, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        if curve.straight:
            yield "L", [(x1, y1)]
        else:
            reach = 0.4 * (y1 - y0)
            yield "C", [(x0 + slope[i] * reach, y0 + reach), (x1 - slope[i + 1] * reach, y1 - reach), (x1, y1)]


def _dot_lines(circuit: Circuit) -> Iterator[str]:
    yield "digraph circuit {"
    yield '  node [fontname="Helvetica", fontsize=12];'
    yield "  edge [arrowhead=none];"
    note = _left_out(circuit)
    if note:
        yield f'  label="{_quoted(note)}";'
    leaves: npt.NDArray[np.int64] = np.flatnonzero(np.diff(circuit.child_start) == 0)
    variables = circuit.variables
    for node in range(circuit.num_nodes):
        literal = int(circuit.literal[node])
        if literal:
            name = _quoted(variables[abs(literal) - 1])
            yield f'  n{node} [shape=box, style=rounded, label="{"" if literal > 0 else "¬"}{name}"];'
        elif circuit.child_start[node + 1] == circuit.child_start[node]:
            yield f'  n{node} [shape=box, style=rounded, label="true"];'
        else:
            sign = "⊗" if circuit.kind[node] == PRODUCT else "⊕"
            yield f'  n{node} [shape=circle, fixedsize=true, width=0.35, label="{sign}"];'
    yield f"  {{ rank=sink; {' '.join(f'n{node};' for node in leaves.tolist())} }}"
    for node in range(circuit.num_nodes):
        for child in circuit.children_of(node).tolist():
            yield f"  n{node} -> n{child};"
    yield "}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
