"""Four views of a map, which make four training rows out of one.

A map may be mirrored at either diagonal, or at both: the path still joins the same two corners and costs the same. But
the tie rule looks different in each view, so the network is told which one it sees. Predictions use the first view,
the map as it is.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from experiments.warcraft.paths import edge_ends
from experiments.warcraft.terrain import TILE

VIEWS = 4
"""As it is, mirrored at the main diagonal, turned upside down, mirrored at the other diagonal."""


def random_views(x: Tensor, y: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Every row in a view drawn at random.

    Args:
        x: flat pictures [rows, pixels * pixels * 3].
        y: edges of their paths [rows, edges].
        side: cells along a side.

    Returns:
        Flat pictures with the number of the view as one more column, and the edges as seen in that view.
    """
    view = torch.randint(VIEWS, (len(x),))
    pictures = x.reshape(-1, side * TILE, side * TILE, 3)
    seen, edges = torch.empty_like(pictures), torch.empty_like(y)
    for number in range(VIEWS):
        rows = view == number
        seen[rows] = turned(pictures[rows], number)
        edges[rows] = y[rows][:, edge_order(side, number)]
    return with_view(seen.flatten(1), view), edges


def with_view(x: Tensor, view: Tensor | int = 0) -> Tensor:
    """Flat pictures with the number of their view as one more column."""
    column = torch.as_tensor(view).to(x).expand(len(x)).unsqueeze(1)
    return torch.cat([x, column], 1)


def turned(pictures: Tensor, view: int) -> Tensor:
    """Pictures [rows, height, width, ...] in a view; height and width are equal.

    Example:
        >>> turned(torch.tensor([[[1, 2], [3, 4]]]), 3).tolist()
        [[[4, 2], [3, 1]]]
    """
    if view in (1, 3):
        pictures = pictures.transpose(1, 2)
    return pictures.flip(1, 2) if view in (2, 3) else pictures


@lru_cache(maxsize=32)
def edge_order(side: int, view: int) -> Tensor:
    """For each edge as seen in a view, its number on the map as it is. Every view is its own inverse."""
    cells = turned(torch.arange(side * side).reshape(1, side, side), view).flatten().tolist()
    ends = edge_ends(side).tolist()
    number = {frozenset(pair): edge for edge, pair in enumerate(ends)}
    return torch.tensor([number[frozenset(cells[cell] for cell in pair)] for pair in ends])
