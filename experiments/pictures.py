"""Pictures of results: learning curves, a gallery of grids, a reliability diagram. Needs matplotlib (extra `plot`)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data import grid_graph
from experiments.methods import SHORT_TITLES, TITLES
from semprola._files import write_atomically
from semprola.errors import SemprolaError

COLOURS = {
    "fil": "#7f7f7f",
    "semantic-loss": "#e69f00",
    "nesy-entropy": "#cc79a7",
    "spl": "#0072b2",
    "product-spl": "#009e73",
    "dl2": "#d55e00",
    "ebm": "#56b4e9",
    "multiplexnet": "#b8a800",
    "ccn": "#000000",
    "hmcnn": "#7b3f00",
    "spl-known": "#6a3d9a",
}
"""One colour per method in all pictures; most are of Okabe and Ito, told apart with any colour vision."""
_VALID, _ELSEWHERE, _BROKEN, _EDGE = "#1a9850", "#f0a030", "#d73027", "#c8c8c8"
_SIDE = 4
_FEWEST = 20


def learning_curves(results: Sequence[Mapping[str, Any]], title: str = "") -> Any:
    """Validation exact match against steps, one line per method; several seeds of one method share their colour.

    Args:
        results: as `experiments.runs.run` gives them.
        title: of the picture.

    Returns:
        A matplotlib figure.
    """
    figure, axes = _figure(7.6, 4.0)
    named: set[str] = set()
    for result in results:
        method, history = result["method"], result["history"]
        label = None if method in named else TITLES[method]
        named.add(method)
        axes.plot(
            history["step"], history["valid_exact"], color=COLOURS[method], label=label, linewidth=1.8, alpha=0.85
        )
    axes.set_xlabel("gradient steps")
    axes.set_ylabel("exact match on validation rows (%)")
    axes.set_ylim(0, 102)
    axes.grid(color="#e8e8e8")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    figure.tight_layout()
    return figure


def gallery(
    x: NDArray[np.float32],
    columns: Mapping[str, tuple[NDArray[np.float32], NDArray[np.bool_]]],
    title: str = "",
) -> Any:
    """Grids in rows, with one column for the truth and one per method: valid paths are green, broken ones red.

    Orange is a path that obeys the constraint and still does not join the end points within the subgraph, which is
    possible where the constraint does not know them.

    Args:
        x: 16 indicators of end points and 24 of present edges [rows, 40].
        columns: for each heading the predicted edges [rows, 24] and whether each is valid [rows].
        title: of the picture.

    Returns:
        A matplotlib figure.
    """
    rows = len(x)
    height = 1.72 * rows + 0.9
    figure = blank_figure(max(1.75 * len(columns) + 0.3, 5.4), height)
    grid = figure.subplots(rows, len(columns), squeeze=False)
    for j, (heading, (edges, valid)) in enumerate(columns.items()):
        for i in range(rows):
            _draw_grid(grid[i, j], x[i], edges[i], bool(valid[i]))
        grid[0, j].set_title(heading, fontsize=11, pad=8)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.subplots_adjust(
        left=0.02, right=0.98, bottom=0.45 / height, top=1 - (0.7 if title else 0.42) / height, wspace=0.1, hspace=0.08
    )
    caption = (
        "green: joins the end points in this subgraph   orange: obeys the constraint, but not that\n"
        "red: violates the constraint   dashed: an edge that is not there"
    )
    figure.text(0.5, 0.012, caption, ha="center", fontsize=8, color="#444444")
    return figure


def gallery_of(results: Sequence[Mapping[str, Any]], title: str = "") -> Any:
    """A gallery of the examples in results of the simple-path task, from the first result of each method.

    Args:
        results: as `experiments.runs.run` gives them, all of one task.
        title: of the picture.

    Returns:
        A matplotlib figure.
    """
    first = results[0]["examples"]
    columns = {"true": (_edges(first["y"]), np.ones(len(first["y"]), bool))}
    for result in results:
        if SHORT_TITLES[result["method"]] not in columns:
            seen = result["examples"]
            columns[SHORT_TITLES[result["method"]]] = _edges(seen["predicted"]), np.array(seen["obeys"], bool)
    x = np.array([[int(bit) for bit in row] for row in first["x"]], np.float32)
    return gallery(x, columns, title)


def reliability_diagram(results: Sequence[Mapping[str, Any]], title: str = "") -> Any:
    """Share of right predictions against the probability that the model states for them; the area shows the rows.

    Tenths of the probability with fewer than 20 rows are left out: their shares say nothing.

    Args:
        results: as `experiments.runs.run` gives them; rows of all seeds of a method are taken together.
        title: of the picture.

    Returns:
        A matplotlib figure.
    """
    figure, axes = _figure(4.8, 4.4)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle=":")
    for method in dict.fromkeys(result["method"] for result in results):
        stated, right, rows = _pooled([r["test"]["reliability"] for r in results if r["method"] == method])
        stated, right, rows = (values[rows >= _FEWEST] for values in (stated, right, rows))
        axes.plot(stated, right, color=COLOURS[method], linewidth=1.2, label=TITLES[method], alpha=0.8)
        size = 180 * np.sqrt(rows / max(1.0, rows.sum()))
        axes.scatter(stated, right, s=size, color=COLOURS[method], alpha=0.6, linewidths=0)
    axes.set_xlabel("p(mode) that the model states")
    axes.set_ylabel("share of exact matches")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    figure.tight_layout()
    return figure


def save(figure: Any, path: str | Path) -> Path:
    """Write a figure as a PNG file, making its folder."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=144, facecolor="white")
    return target


def save_svg(figure: Any, path: Path) -> Path:
    """Write a figure as an SVG file, making its folder; the same figure gives the same file."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "semprola"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, facecolor="white")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())
    return path


def png(figure: Any) -> bytes:
    """A figure as the bytes of a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def _pooled(parts: Sequence[Mapping[str, Any]]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Mean stated probability, share that is right, and rows of each tenth of [0, 1], over several runs."""
    stated, right, rows = (
        np.array([value for part in parts for value in part[name]], float)
        for name in ("confidence", "accuracy", "rows")
    )
    tenth = np.clip((stated * 10).astype(int), 0, 9)
    total = np.bincount(tenth, rows, minlength=10)
    used = total > 0
    means = [np.bincount(tenth, rows * values, minlength=10)[used] / total[used] for values in (stated, right)]
    return means[0], means[1], total[used]


def _edges(rows: Sequence[str]) -> NDArray[np.float32]:
    """The edges of label vectors, of which they are the first entries [rows, 24]."""
    return np.array([[int(bit) for bit in row[: len(grid_graph().edges)]] for row in rows], np.float32)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    figure = blank_figure(width, height)
    return figure, figure.subplots()


def blank_figure(width: float, height: float) -> Any:
    """A figure without a window, not registered with pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SemprolaError("pictures need matplotlib: pip install 'semprola[plot]'") from None
    return Figure(figsize=(width, height))


def _joins(x: NDArray[np.float32], edges: NDArray[np.float32]) -> bool:
    """Whether a path has the end points of x and uses only edges that are present there."""
    degree = np.zeros(_SIDE * _SIDE)
    for (u, v), used in zip(grid_graph().edges, edges, strict=True):
        degree[[u, v]] += used
    return bool(((degree == 1) == (x[: _SIDE * _SIDE] > 0)).all() and (edges <= x[_SIDE * _SIDE :]).all())


def _draw_grid(axes: Any, x: NDArray[np.float32], edges: NDArray[np.float32], valid: bool) -> None:
    colour = _BROKEN if not valid else _VALID if _joins(x, edges) else _ELSEWHERE
    present = x[_SIDE * _SIDE :]
    for (u, v), there, used in zip(grid_graph().edges, present, edges, strict=True):
        line = [u % _SIDE, v % _SIDE], [-(u // _SIDE), -(v // _SIDE)]
        if there:
            axes.plot(*line, color=_EDGE, linewidth=1.6, zorder=1, solid_capstyle="round")
        if used:
            style = "-" if there else (0, (1.2, 1.2))
            axes.plot(*line, color=colour, linewidth=4, zorder=2, linestyle=style)
    for node in range(_SIDE * _SIDE):
        end = bool(x[node])
        axes.scatter(
            node % _SIDE, -(node // _SIDE), s=62 if end else 11, zorder=3,
            color="black" if end else "#999999", linewidths=0,
        )  # fmt: skip
    if not edges.any():
        axes.text((_SIDE - 1) / 2, (1 - _SIDE) / 2, "no edge", color=colour, fontsize=10, ha="center", va="center")
    axes.set_aspect("equal")
    axes.set_xlim(-0.4, _SIDE - 0.6)
    axes.set_ylim(0.6 - _SIDE, 0.4)
    axes.axis("off")
