"""Terrain maps from a seed: coherent noise, five classes of terrain, procedural textures of 8 × 8 pixels.

The published maps of this task show a game's art and cannot be shipped. These have the same costs, sizes and file
layout, and textures of their own: the colours of the classes overlap, so that the class of a tile cannot be read off a
single pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COSTS = (0.8, 1.2, 5.3, 7.7, 9.2)
"""Published cost of a cell of each class: grass, earth, forest, water, rock."""
NAMES = ("grass", "earth", "forest", "water", "rock")
TILE = 8
"""Pixels along a side of a cell."""

Classes = NDArray[np.int64]
Pixels = NDArray[np.uint8]

_SHARES = (0.34, 0.22, 0.16, 0.16, 0.12)
"""How much of a map each class covers on average."""
_BASE = np.array([[72, 112, 48], [122, 96, 58], [44, 78, 40], [48, 78, 118], [104, 102, 98]], np.float32)
_ACCENT = np.array([[104, 138, 62], [92, 70, 42], [20, 44, 22], [84, 116, 146], [66, 64, 66]], np.float32)
_CHUNK = 500


def random_classes(maps: int, side: int, random: np.random.Generator) -> Classes:
    """Classes of terrain that lie together in patches [maps, side, side].

    Two fields of smooth noise decide: one how high, one how wet a cell is. Low and wet is water, high is rock, wet is
    forest, dry is earth, the rest is grass.

    Example:
        >>> random_classes(2, 12, np.random.default_rng(0)).shape
        (2, 12, 12)
    """
    height, wetness = _ranked(_noise(maps, side, random)), _ranked(_noise(maps, side, random))
    grass, earth, forest, water, rock = _SHARES
    classes = np.zeros((maps, side, side), np.int64)
    classes[height > 1 - rock] = 4
    classes[height < water] = 3
    middle = classes == 0
    rest = grass + earth + forest
    classes[middle & (wetness > 1 - forest / rest)] = 2
    classes[middle & (wetness < earth / rest)] = 1
    return classes


def paint(classes: Classes, random: np.random.Generator) -> Pixels:
    """Pictures of maps [maps, side * 8, side * 8, 3], every tile drawn anew.

    Example:
        >>> random = np.random.default_rng(0)
        >>> paint(random_classes(1, 12, random), random).shape
        (1, 96, 96, 3)
    """
    maps, side, _ = classes.shape
    pictures = np.empty((maps, side * TILE, side * TILE, 3), np.uint8)
    for first in range(0, maps, _CHUNK):
        part = classes[first : first + _CHUNK]
        tiles = _tiles(part.reshape(-1), random).reshape(len(part), side, side, TILE, TILE, 3)
        pictures[first : first + _CHUNK] = tiles.transpose(0, 1, 3, 2, 4, 5).reshape(-1, side * TILE, side * TILE, 3)
    return pictures


def _noise(maps: int, side: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Sum of smooth random fields, the finer the weaker [maps, side, side]."""
    total = np.zeros((maps, side, side), np.float32)
    for cells, weight in ((2, 1.0), (4, 0.6), (7, 0.3)):
        corners = random.standard_normal((maps, cells + 1, cells + 1), np.float32)
        at = np.linspace(0, cells, side, endpoint=False) + 0.5 * cells / side
        low, part = at.astype(int), (at % 1).astype(np.float32)
        part = part * part * (3 - 2 * part)
        rows = corners[:, low] * (1 - part)[:, None] + corners[:, low + 1] * part[:, None]
        total += weight * (rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part)
    return total


def _ranked(field: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values replaced by their rank among all maps, as a share from 0 to 1: classes cover fixed shares on average."""
    order = np.empty(field.size, np.float32)
    order[np.argsort(field, axis=None)] = np.linspace(0, 1, field.size, dtype=np.float32)
    return order.reshape(field.shape)


def _tiles(kinds: Classes, random: np.random.Generator) -> NDArray[np.uint8]:
    """One tile per cell [cells, 8, 8, 3]: the colour of its class, mixed with an accent by a pattern of its class."""
    count = len(kinds)
    pattern = np.zeros((count, TILE, TILE), np.float32)
    for kind, draw in enumerate((_speckles, _pebbles, _crowns, _ripples, _facets)):
        cells = np.flatnonzero(kinds == kind)
        pattern[cells] = draw(len(cells), random)
    light = 1 + 0.13 * random.standard_normal((count, 1, 1, 1), np.float32)
    tint = 6 * random.standard_normal((count, 1, 1, 3), np.float32)
    grain = 11 * random.standard_normal((count, TILE, TILE, 3), np.float32)
    colour = _BASE[kinds][:, None, None] * (1 - pattern[..., None]) + _ACCENT[kinds][:, None, None] * pattern[..., None]
    tiles: Pixels = np.clip(colour * light + tint + grain, 0, 255).astype(np.uint8)
    return tiles


def _speckles(count: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Grass: single light blades."""
    return (random.random((count, TILE, TILE), np.float32) < 0.22).astype(np.float32)


def _pebbles(count: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Earth: dark spots of two pixels."""
    spots = random.random((count, TILE, TILE + 1), np.float32) < 0.12
    return (spots[:, :, 1:] | spots[:, :, :-1]).astype(np.float32)


def _crowns(count: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Forest: three round dark crowns."""
    y, x = np.mgrid[:TILE, :TILE].astype(np.float32)
    nearest = np.full((count, TILE, TILE), np.inf, np.float32)
    for _ in range(3):
        centre = random.uniform(0.5, TILE - 1.5, (2, count, 1, 1)).astype(np.float32)
        nearest = np.minimum(nearest, (y - centre[0]) ** 2 + (x - centre[1]) ** 2)
    return _shares(1.35 - nearest / 5.5)


def _ripples(count: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Water: waves that run across, at a random height and slant."""
    y, x = np.mgrid[:TILE, :TILE].astype(np.float32)
    phase = random.uniform(0, 2 * np.pi, (count, 1, 1)).astype(np.float32)
    slant = random.uniform(-0.25, 0.25, (count, 1, 1)).astype(np.float32)
    return _shares(0.5 + 0.7 * np.sin(1.6 * (y + slant * x) + phase))


def _facets(count: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Rock: a bright and a dark side of an edge at a random place and angle."""
    y, x = np.mgrid[:TILE, :TILE].astype(np.float32) - (TILE - 1) / 2
    angle = random.uniform(0.3, 1.2, (count, 1, 1)) * np.where(random.random((count, 1, 1)) < 0.5, 1, -1)
    shift = random.uniform(-2, 2, (count, 1, 1))
    side = (np.cos(angle) * x + np.sin(angle) * y + shift > 0).astype(np.float32)
    return _shares(0.85 * side + 0.1)


def _shares(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values held between 0 and 1."""
    held: NDArray[np.float32] = np.clip(values, 0, 1).astype(np.float32)
    return held
