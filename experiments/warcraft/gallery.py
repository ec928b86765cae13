"""Pictures of predicted paths on their maps: valid ones green, broken ones red; and what a model is unsure of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.pictures import blank_figure
from experiments.warcraft.dataset import Maps
from experiments.warcraft.models import PathModel
from experiments.warcraft.paths import distances, edge_ends, path_costs
from experiments.warcraft.score import is_path
from experiments.warcraft.terrain import TILE

VALID, BROKEN, TRUE = "#7CFC5A", "#FF4D4D", "#FFFFFF"
SAMPLES = 5
_LOOKED_AT = 200
"""Test maps from which the pictures are taken."""

Edges = NDArray[np.float32]


def draw_gallery(maps: Maps, models: Mapping[str, PathModel], folder: Path) -> list[Path]:
    """Two pictures of the first test maps: what each model predicts, and where the last model is unsure.

    Args:
        maps: the test maps.
        models: trained models by title. The last one is a layer that can be sampled.
        folder: for ``warcraft.png`` and ``warcraft_unsure.png``.

    Returns:
        The files that were written.
    """
    some = Maps(maps.pictures[:_LOOKED_AT], maps.costs[:_LOOKED_AT], maps.labels[:_LOOKED_AT])
    x = torch.from_numpy(np.array(some.pictures)).flatten(1)
    with torch.no_grad():
        predicted = {title: model.eval()(x).mode.numpy() for title, model in models.items()}
        last = list(models.values())[-1](x)
        entropy = last.entropy()
        marginals = last.mean.numpy()
        torch.manual_seed(0)
        samples = last.sample((SAMPLES,)).numpy()
    shown = _telling(some, predicted)
    figure = gallery(
        some.pictures[shown],
        some.costs[shown],
        some.labels[shown],
        {title: edges[shown] for title, edges in predicted.items()},
    )
    row = int(entropy.argmax())
    mode = list(predicted.values())[-1][row]
    other = unsure(some.pictures[row], marginals[row], mode, list(samples[:, row]), some.labels[row])
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "warcraft.png", folder / "warcraft_unsure.png"]
    for drawn, path in zip((figure, other), paths, strict=True):
        drawn.savefig(path, dpi=90)
    return paths


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
    """One map in two rows: the least-cost path, the mode, the marginals of the edges as a heat map, and samples."""
    columns = -(-(3 + len(samples)) // 2)
    figure = blank_figure(2.1 * columns, 2.3 * 2)
    figure.set_layout_engine("constrained")
    axes = figure.subplots(2, columns, squeeze=False).ravel()
    for axis in axes:
        axis.axis("off")
    for axis, title in zip(axes, ["least cost", "mode", "marginals", *["sample"] * len(samples)], strict=False):
        _show(axis, picture if title != "marginals" else _dimmed(picture), title)
    _draw_edges(axes[0], label, TRUE)
    _draw_edges(axes[1], mode, VALID)
    _draw_heat(figure, axes[2], marginals)
    for axis, sample in zip(axes[3:], samples, strict=False):
        _draw_edges(axis, sample, VALID)
    return figure


def _telling(maps: Maps, predicted: Mapping[str, Edges]) -> list[int]:
    """The first two maps on which the first method breaks the constraint, the first on which it does not, and the first
    on which the last method is not exact."""
    valid = is_path(next(iter(predicted.values())), maps.side)
    exact = (list(predicted.values())[-1] == maps.labels).all(1)
    wanted = [*np.flatnonzero(~valid)[:2], *np.flatnonzero(valid)[:1], *np.flatnonzero(~exact)[:1]]
    return list(dict.fromkeys(int(row) for row in wanted))


def _dimmed(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """In dark shades of grey, for colours to be seen on it."""
    grey: NDArray[np.float64] = 0.5 * picture.mean(2, keepdims=True)
    return grey.repeat(3, 2).astype(np.uint8)


def _show(axis: Any, picture: NDArray[np.uint8], title: str) -> None:
    axis.axis("on")
    axis.imshow(picture)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(title, fontsize=10)


def _draw_edges(axis: Any, edges: Edges, colour: str) -> None:
    """Lines between the middles of cells."""
    for x, y in _lines(edges).values():
        axis.plot(x, y, color="black", alpha=0.6, linewidth=4, solid_capstyle="round")
        axis.plot(x, y, color=colour, linewidth=2.2, solid_capstyle="round")


def _draw_heat(figure: Any, axis: Any, weights: Edges) -> None:
    """Lines whose colour says how probable they are, the most probable on top, and a scale."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = colormaps["plasma"]
    lines = _lines(weights)
    for edge in sorted(lines, key=lambda edge: weights[edge]):
        axis.plot(*lines[edge], color=colours(float(weights[edge])), linewidth=3, solid_capstyle="round")
    bar = figure.colorbar(
        ScalarMappable(Normalize(0, 1), colours), ax=axis, location="bottom", fraction=0.05, pad=0.02, ticks=[0, 0.5, 1]
    )
    bar.ax.tick_params(labelsize=7)


def _lines(weights: Edges) -> dict[int, tuple[Any, Any]]:
    """From which x to which x, and y to y, each edge of more than one percent goes."""
    side = round((len(weights) / 2 + 0.25) ** 0.5 + 0.5)
    ends = edge_ends(side)
    found = {}
    for edge in np.flatnonzero(weights > 0.01):
        y, x = (np.array(np.divmod(ends[edge], side)) + 0.5) * TILE - 0.5
        found[int(edge)] = (x, y)
    return found
