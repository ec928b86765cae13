"""Pictures of predicted paths on their maps: valid ones green, broken ones red; and what a model is unsure of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.pictures import blank_figure
from experiments.warcraft.paths import distances, edge_ends, path_costs
from experiments.warcraft.score import is_path
from experiments.warcraft.terrain import TILE

VALID, BROKEN, TRUE = "#7CFC5A", "#FF4D4D", "#FFFFFF"

Edges = NDArray[np.float32]


def gallery(pictures: NDArray[np.uint8], costs: NDArray[Any], labels: Edges, predicted: Mapping[str, Edges]) -> Any:
    """One row per map: the map, the least-cost path, then one picture per method with its cost below.

    Args:
        pictures: [maps, pixels, pixels, 3]
        costs: of the cells [maps, side, side].
        labels: edges of the least-cost paths [maps, edges].
        predicted: the edges that each method predicts.

    Returns:
        A matplotlib figure.
    """
    columns = 2 + len(predicted)
    figure = blank_figure(2.1 * columns, 2.45 * len(pictures))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(len(pictures), columns, squeeze=False)
    least = distances(costs)[:, 0, 0] / 10
    for row, axis in enumerate(axes):
        _show(axis[0], pictures[row], "map" if row == 0 else "")
        _show(axis[1], pictures[row], "least cost" if row == 0 else "")
        _draw_edges(axis[1], labels[row], TRUE)
        axis[1].set_xlabel(f"cost {least[row]:.1f}", fontsize=9)
        for place, (title, edges) in zip(axis[2:], predicted.items(), strict=True):
            _show(place, pictures[row], title if row == 0 else "")
            valid = bool(is_path(edges[row : row + 1], costs.shape[1])[0])
            _draw_edges(place, edges[row], VALID if valid else BROKEN)
            spent = float(path_costs(edges[row : row + 1], costs[row : row + 1])[0])
            place.set_xlabel(f"cost {spent:.1f}" if valid else "no path", fontsize=9)
    return figure


def unsure(picture: NDArray[np.uint8], marginals: Edges, mode: Edges, samples: Sequence[Edges], label: Edges) -> Any:
    """One map: the least-cost path, the mode, the marginals of the edges as lines of their own weight, samples."""
    panels = 3 + len(samples)
    figure = blank_figure(2.1 * panels, 2.45)
    figure.set_layout_engine("constrained")
    (row,) = figure.subplots(1, panels, squeeze=False)
    for axis, title in zip(row, ["least cost", "mode", "marginals", *["sample"] * len(samples)], strict=True):
        _show(axis, picture, title)
    _draw_edges(row[0], label, TRUE)
    _draw_edges(row[1], mode, VALID)
    _draw_edges(row[2], marginals, "#FFE14D")
    for axis, sample in zip(row[3:], samples, strict=True):
        _draw_edges(axis, sample, VALID)
    return figure


def _show(axis: Any, picture: NDArray[np.uint8], title: str) -> None:
    axis.imshow(picture)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(title, fontsize=10)


def _draw_edges(axis: Any, weights: Edges, colour: str) -> None:
    """Lines between the middles of cells, as opaque as their weights."""
    side = round((len(weights) / 2 + 0.25) ** 0.5 + 0.5)
    ends = edge_ends(side)
    for edge in np.flatnonzero(weights > 0.01):
        y, x = (np.array(np.divmod(ends[edge], side)) + 0.5) * TILE - 0.5
        axis.plot(x, y, color="black", alpha=0.6 * float(weights[edge]), linewidth=4, solid_capstyle="round")
        axis.plot(x, y, color=colour, alpha=float(weights[edge]), linewidth=2.2, solid_capstyle="round")
