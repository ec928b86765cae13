"""The pictures of the examples' pages. Need matplotlib (extra `plot`).

A function of `DRAWN` draws what an example is about with the example's own functions, attributes of `e`. It is also a
cell of the notebook, so it uses nothing else of this file. `bars` draws the figures that an example printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from experiments.pictures import COLOURS, blank_figure

_METHODS = {
    "independent labels": "fil",
    "pytorch-crf": "fil",
    "SPL": "spl",
    "ProductSPL": "product-spl",
    "SequenceSPL": "spl",
    "DL2": "dl2",
    "semantic loss": "semantic-loss",
    "neuro-symbolic entropy": "nesy-entropy",
    "pairwise energy": "ebm",
    "MultiplexNet": "multiplexnet",
    "CCN": "ccn",
    "HMCNN": "hmcnn",
}
"""Whose colour a row of figures has, by a word in its name; the last that fits."""
_OTHERS = "#9ecae1", "#4292c6", "#2171b5", "#084594"


def digit_facts(e: Any) -> Any:
    """Digits of which independent labels break the rules, and what both networks say; right answers are green."""
    from matplotlib.figure import Figure

    x, y = e.rows()
    (test, alone), (_, ruled) = (e.predicted(kind, x, y, 200, 0, 40) for kind in (False, True))
    broken = (~e.RULES.evaluate(alone, e.LABELS)).nonzero().flatten()[:5]
    figure = Figure(figsize=(9.6, 2.2))
    for axes, row in zip(figure.subplots(1, 5), broken.tolist(), strict=True):
        axes.imshow(x[test[row], 0], cmap="gray_r")
        axes.set_axis_off()
        for line, (who, states) in enumerate({"alone": alone, "rules": ruled}.items()):
            names = [name.removeprefix("digit") for name, on in zip(e.LABELS, states[row], strict=True) if on]
            colour = "#1a9850" if bool((states[row] == y[test[row]]).all()) else "#d73027"
            words = f"{who}: {', '.join(names) or 'nothing'}"
            axes.text(3.5, 8.8 + 1.4 * line, words, ha="center", color=colour, fontsize=9)
    figure.subplots_adjust(left=0.03, right=0.97, top=0.98, bottom=0.26, wspace=0.5)
    return figure


def visual_sudoku(e: Any) -> Any:
    """A board as pictures, read cell by cell, and read with the rules; wrong digits are red."""
    import torch
    from matplotlib.figure import Figure

    x, y = e.boards(100, 0.5, False, 0)
    new, truth = e.boards(50, 0.5, True, 0)
    reader = e.train(None, x, y, 0, 20)
    with torch.no_grad():
        logits = reader(new)
    cells = logits.view(-1, 16, 4).argmax(-1)
    ruled = e.sp.ConstraintLayer(e.CIRCUIT)(logits).mode.view(-1, 16, 4).argmax(-1)
    right = truth.view(-1, 16, 4).argmax(-1)
    row = int(((cells != right).sum(1) * (ruled == right).all(1)).argmax())
    figure = Figure(figsize=(9, 3.2))
    pictures, *boards = figure.subplots(1, 3)
    pictures.imshow(new[row].view(4, 4, 8, 8).permute(0, 2, 1, 3).reshape(32, 32), cmap="gray_r")
    pictures.set_title("sixteen pictures")
    for line in (7.5, 15.5, 23.5):
        pictures.axhline(line, color="white", linewidth=3)
        pictures.axvline(line, color="white", linewidth=3)
    pictures.set_axis_off()
    for axes, title, found in zip(boards, ("cell by cell", "with the rules"), (cells, ruled), strict=True):
        for place, (digit, true) in enumerate(zip(found[row].tolist(), right[row].tolist(), strict=True)):
            colour = "black" if digit == true else "#d73027"
            axes.text(
                place % 4 + 0.5, 3.5 - place // 4, str(digit + 1), ha="center", va="center", size=16, color=colour
            )
        for line in range(5):
            width = 2 if line % 2 == 0 else 0.7
            axes.plot([0, 4], [line, line], color="black", linewidth=width)
            axes.plot([line, line], [0, 4], color="black", linewidth=width)
        axes.set_title(title)
        axes.set_aspect("equal")
        axes.set_axis_off()
    figure.tight_layout()
    return figure


def nurse_roster(e: Any) -> Any:
    """One roster by independent labels and one with the rules; shifts with a wrong number of nurses are red."""
    import torch
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    layer = e.sp.ConstraintLayer(e.rules(), labels=e.LABELS)
    x, y = e.history(layer, 500, 0.5, 0)
    new, _ = e.history(layer, 20, 0.5, 1000)
    nets = []
    for last in (torch.nn.Identity(), layer):
        torch.manual_seed(0)
        nets.append(e.network(last))
        e.train(nets[-1], x, y, 20)
    with torch.no_grad():
        found = {"independent labels": nets[0](new)[0] > 0, "with the rules": nets[1](new).mode[0] > 0}
    figure = Figure(figsize=(9, 2.9))
    for axes, (title, states) in zip(figure.subplots(1, 2), found.items(), strict=True):
        for column, (day, shift) in enumerate((day, shift) for day in e.DAYS for shift in e.SHIFTS):
            works = [bool(states[e.LABELS.index(f"{nurse}_{day}_{shift}")]) for nurse in e.NURSES]
            colour = "#1a9850" if sum(works) == e.SHIFTS[shift] else "#d73027"
            for row, on in enumerate(works):
                axes.add_patch(Rectangle((column, -row), 0.92, 0.92, facecolor=colour if on else "#eeeeee"))
            axes.text(column + 0.46, 1.1, shift, ha="center", rotation=60, color=colour)
        for row, nurse in enumerate(e.NURSES):
            axes.text(-0.2, 0.46 - row, nurse, ha="right", va="center")
        axes.set_xlim(-1.2, 8)
        axes.set_ylim(-4.1, 2.2)
        axes.set_title(title)
        axes.set_axis_off()
    figure.tight_layout()
    return figure


def noisy_queens(e: Any) -> Any:
    """What the sensors see of a board, and how it is read; queens on wrong squares are red."""
    import torch
    from matplotlib.figure import Figure

    n = 16
    layer, net = e.sp.ConstraintLayer(e.sp.split(e.rules(n), max_nodes=300)), e.network()
    x, y = e.sensed(n, 60, 0)
    e.train(net, None, x, y, 15)
    seen, truth = e.sensed(n, 1, 1)
    with torch.no_grad():
        odds = net(seen)
        best = torch.eye(n)[odds.view(n, n).argmax(1)]
        boards = {"best square of every row": best, "with the rules": layer(odds).mode.view(n, n)}
    figure = Figure(figsize=(9, 3.3))
    first, *others = figure.subplots(1, 3)
    first.imshow(odds.view(n, n), cmap="gray_r")
    first.set_title("what the network sees")
    for axes, (title, board) in zip(others, boards.items(), strict=True):
        axes.imshow(torch.arange(n)[:, None] + torch.arange(n) & 1, cmap="gray_r", vmax=8)
        for row, column in board.nonzero().tolist():
            colour = "#1a9850" if bool(truth.view(n, n)[row, column]) else "#d73027"
            axes.text(column, row, "♛", ha="center", va="center", color=colour, size=11)
        axes.set_title(title)
    for axes in (first, *others):
        axes.set_axis_off()
    figure.tight_layout()
    return figure


DRAWN: dict[str, Callable[[Any], Any]] = {
    "digit_facts": digit_facts,
    "noisy_queens": noisy_queens,
    "nurse_roster": nurse_roster,
    "visual_sudoku": visual_sudoku,
}


def bars(lines: Sequence[str], columns: Sequence[str]) -> Any:
    """Percentages that an example printed: one panel per column, one bar per row.

    Args:
        lines: what it printed; rows of figures start with a name, and their percentages end in "%".
        columns: the names of the first columns of percentages.
    """
    rows = [
        (line[: found.start()].strip(), re.findall(r"([\d.]+)%", line)) for line in lines if (found := _figure(line))
    ]
    figure = blank_figure(9, 0.8 + 0.32 * len(rows))
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for place, (axes, column) in enumerate(zip(panels, columns, strict=True)):
        values = [float(found[place]) for _, found in rows]
        colours = [_colour(name, row) for row, (name, _) in enumerate(rows)]
        drawn = axes.barh([name for name, _ in rows], values, color=colours, height=0.65)
        axes.bar_label(drawn, fmt="%.1f", padding=2, fontsize=8)
        axes.set_title(f"{column}, %", fontsize=10, loc="left")
        axes.set_xlim(0, 118)
        axes.set_xticks([0, 50, 100])
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.axes[0].invert_yaxis()
    figure.tight_layout()
    return figure


def _figure(line: str) -> re.Match[str] | None:
    return re.search(r"\s[\d.]+%", line)


def _colour(name: str, row: int) -> str:
    fits = [method for word, method in _METHODS.items() if word in name]
    return COLOURS[fits[-1]] if fits else _OTHERS[min(row, len(_OTHERS) - 1)]
