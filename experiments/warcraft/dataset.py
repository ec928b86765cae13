"""Maps in the layout of the published data set, read or generated; labels are always worked out from the costs.

A folder ``12x12`` (also 18x18, 24x24, 30x30) holds, for each of train, val and test, ``{part}_maps.npy`` (pictures,
uint8 [maps, pixels, pixels, 3]), ``{part}_vertex_weights.npy`` (costs [maps, side, side]) and
``{part}_shortest_paths.npy`` (0/1 [maps, side, side], for eight neighbours; not used here).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data.files import cache_folder
from experiments.warcraft.paths import least_cost_paths, touched_cells
from experiments.warcraft.terrain import COSTS, TILE, paint, random_classes
from semprola._files import write_atomically
from semprola.errors import FormatError, SemprolaError

SIDES = (12, 18, 24, 30)
PARTS = {"train": 10_000, "val": 1_000, "test": 1_000}
"""Maps of each part, as published."""
_VERSION = 1
"""Of the generator: other maps for the same seed need another number."""


@dataclass(frozen=True)
class Maps:
    """Maps of one part.

    Attributes:
        pictures: uint8 [maps, pixels, pixels, 3], possibly a file mapped into memory.
        costs: of the cells, float32 [maps, side, side].
        labels: edges of the least-cost path, 0/1 [maps, edges].
    """

    pictures: NDArray[np.uint8]
    costs: NDArray[np.float32]
    labels: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def side(self) -> int:
        """Cells along a side."""
        return int(self.costs.shape[1])


def load_maps(folder: str | Path, part: str, *, side: int = 12, limit: int | None = None, neighbours: int = 4) -> Maps:
    """Read one part of a data set in the published layout; pictures stay on disk until they are used.

    Args:
        folder: holds ``12x12`` and so on, or is that folder itself.
        part: "train", "val" or "test".
        side: cells along a side.
        limit: read only the first maps.
        neighbours: of a cell in the labels, 4 or 8.

    Raises:
        FormatError: a file is missing or holds something else; names the file.
    """
    if part not in PARTS:
        raise SemprolaError(f"no part {part!r}: choose from {', '.join(PARTS)}")
    if side not in SIDES:
        raise SemprolaError(f"no maps of {side} × {side} cells are published: choose from {', '.join(map(str, SIDES))}")
    base = Path(folder)
    inner = base / f"{side}x{side}"
    base = inner if inner.is_dir() else base
    pictures = _array(base / f"{part}_maps.npy")[:limit]
    costs = _array(base / f"{part}_vertex_weights.npy")[:limit]
    _check(base / f"{part}_maps.npy", pictures, (len(pictures), side * TILE, side * TILE, 3), "uint8")
    _check(base / f"{part}_vertex_weights.npy", costs, (len(pictures), side, side), "a floating-point type")
    costs = np.asarray(costs, np.float32)
    if not np.isfinite(costs).all() or (costs <= 0).any() or (costs > 100).any():
        raise FormatError(f"{base / part}_vertex_weights.npy: costs must be above 0 and at most 100")
    return Maps(pictures, costs, least_cost_paths(costs, neighbours))


def generated_maps(
    part: str,
    *,
    side: int = 12,
    seed: int = 0,
    sizes: Mapping[str, int] = PARTS,
    cache: str | Path | None = None,
    neighbours: int = 4,
) -> Maps:
    """Generated maps, kept on disk in the published layout.

    Args:
        part: "train", "val" or "test".
        side: cells along a side.
        seed: which maps; the parts of one seed have no map in common.
        sizes: how many maps of each part.
        cache: the folder to keep them in; by default the user's cache.
        neighbours: of a cell in the labels, 4 or 8.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     maps = generated_maps("val", seed=3, sizes={"train": 2, "val": 4, "test": 2}, cache=folder)
        ...     len(maps), maps.pictures.shape[1:], maps.labels.shape[1]
        (4, (96, 96, 3), 264)
    """
    root = cache_folder() if cache is None else Path(cache)
    counts = "-".join(str(sizes[name]) for name in PARTS)
    folder = root / f"terrain-{_VERSION}-seed{seed}-{counts}" / f"{side}x{side}"
    if not (folder / "complete.json").is_file():
        generate(folder, side=side, seed=seed, sizes=sizes)
    return load_maps(folder, part, side=side, neighbours=neighbours)


def generate(folder: str | Path, *, side: int = 12, seed: int = 0, sizes: Mapping[str, int] = PARTS) -> None:
    """Write all parts of a generated data set; repeat the call after an interruption."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(PARTS):
        random = np.random.default_rng([seed, number, side])
        classes = random_classes(sizes[part], side, random)
        costs = np.array(COSTS, np.float16)[classes]
        _save(target / f"{part}_maps.npy", paint(classes, random))
        _save(target / f"{part}_vertex_weights.npy", costs)
        _save(target / f"{part}_shortest_paths.npy", touched_cells(least_cost_paths(costs), side))
    about = {"generator": _VERSION, "seed": seed, "neighbours": 4, "sizes": dict(sizes)}
    write_atomically(target / "complete.json", json.dumps(about).encode())


def _save(path: Path, array: NDArray[Any]) -> None:
    write_atomically(path, lambda file: np.save(file, array, allow_pickle=False))


def _array(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FormatError(
            f"{path}: there is no such file; --data must name a folder with the published layout, "
            "12x12/train_maps.npy and so on"
        ) from None
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(f"{path}: not a numpy file ({error})") from None
    return array


def _check(path: Path, array: NDArray[Any], shape: tuple[int, ...], kind: str) -> None:
    fits = array.dtype == np.uint8 if kind == "uint8" else np.issubdtype(array.dtype, np.floating)
    if array.shape != shape or not fits:
        raise FormatError(f"{path}: expected {kind} {list(shape)}, found {array.dtype} {list(array.shape)}")
