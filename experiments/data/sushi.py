"""Rankings of ten kinds of sushi: PrefLib files, and a generator of similar data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.data.dataset import Dataset
from experiments.data.files import PublishedFile
from semprola.errors import FormatError

SUSHI = PublishedFile(
    "sushi/sushi.soc",
    "https://raw.githubusercontent.com/UCLA-StarAI/Semantic-Loss/82326051acc3f634358f32011977b62f794680fa"
    "/complex_constraints/sushi.soc",
    "af374669dce6551e66d15ffa087c7744ce5e0b14e4265fc6c57e4fe7672de3a4",
)

KNOWN = (1, 2, 3, 5, 7, 8)
"""Items whose order is the input, numbered from 1 as in the file."""

ASKED = (4, 6, 9, 10)
"""Items whose order is to be predicted."""

_MOST = 10**7


def load_sushi(path: str | Path, *, multiplicity: bool = False) -> Dataset:
    """Read a file of rankings as the experiments' task: predict the order of four items from that of the other six.

    Args:
        path: a PrefLib file of ten items, see :func:`read_preflib`.
        multiplicity: whether a ranking that several people gave becomes several rows (5,000 people) or, as in the
            published experiments, one (4,926 rankings).

    Returns:
        x: "item i has rank j" among the known items [rows, 36]; y: the same among the asked ones [rows, 16];
        groups: one per distinct ranking.

    Raises:
        FormatError: if the file does not have this format, or is not about ten items.
    """
    rankings, counts = read_preflib(path)
    if rankings.shape[1] != 10:
        raise FormatError(f"{path}: rankings of {rankings.shape[1]} items, expected 10")
    groups = np.arange(len(rankings), dtype=np.int64)
    if multiplicity:
        groups = np.repeat(groups, counts)
    return _task("sushi, 5,000 people" if multiplicity else "sushi, 4,926 rankings", rankings[groups], groups)


def generate_rankings(rows: int = 5000, seed: int = 0, tastes: int = 4) -> Dataset:
    """Rankings by people of a few tastes (a mixture of Plackett–Luce models), as the task of :func:`load_sushi`.

    Args:
        rows: the number of people.
        seed: seed of the data.
        tastes: the number of mixture components.

    Raises:
        ValueError: if the arguments are invalid.

    Example:
        >>> data = generate_rankings(rows=8, seed=3)
        >>> data.x.shape, data.y.shape, data.y.reshape(8, 4, 4).sum(1).max()
        ((8, 36), (8, 16), np.float32(1.0))
    """
    if rows < 1 or tastes < 1:
        raise ValueError(f"generate_rankings: rows and tastes must be at least 1, not {rows!r} and {tastes!r}")
    random = np.random.default_rng(seed)
    liking = 1.5 * random.standard_normal((tastes, 10))
    taste = random.integers(tastes, size=rows)
    # ordering by liking + Gumbel noise draws from Plackett–Luce
    noisy = liking[taste] + random.gumbel(size=(rows, 10))
    rankings = np.argsort(-noisy, axis=1, kind="stable") + 1
    return _task(f"generated rankings (seed {seed})", rankings.astype(np.int64), np.arange(rows, dtype=np.int64))


def read_preflib(path: str | Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read strict complete orders in either dialect of PrefLib.

    The older dialect has the number of items, a line ``i,name`` per item, totals, and lines ``count,item,item,…``. The
    newer one has lines ``# KEY: value`` and lines ``count: item,item,…``.

    Args:
        path: the file.

    Returns:
        Rankings, best item first, items numbered from 1 [rankings, items]; and how many people gave each [rankings].

    Raises:
        FormatError: if a line does not have this format; the message gives its number.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read as text ({error})") from None
    numbered = [(i, line.strip()) for i, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise FormatError(f"{path}: the file is empty")
    newer = numbered[0][1].startswith("#")
    rows = [entry for entry in numbered if not entry[1].startswith("#")] if newer else _older_rows(path, numbered)
    rankings: list[list[int]] = []
    counts: list[int] = []
    for number, line in rows:
        head, _, tail = line.partition(":" if newer else ",")
        count = _whole(head, f"{path}:{number}", _MOST)
        items = [_whole(item, f"{path}:{number}", _MOST) for item in tail.split(",")]
        if sorted(items) != list(range(1, len(items) + 1)) or (rankings and len(items) != len(rankings[0])):
            raise FormatError(f"{path}:{number}: not a strict order of all items: {line[:60]!r}")
        rankings.append(items)
        counts.append(count)
    if not rankings:
        raise FormatError(f"{path}: the file has no rankings")
    return np.array(rankings, np.int64), np.array(counts, np.int64)


def _older_rows(path: str | Path, numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines after the items and the totals, which are checked."""
    items = _whole(numbered[0][1], f"{path}:{numbered[0][0]}", _MOST)
    if len(numbered) < items + 2:
        raise FormatError(f"{path}: {items} items are announced, and the file has {len(numbered)} lines")
    number, totals = numbered[items + 1]
    people, _, distinct = [_whole(part, f"{path}:{number}", _MOST) for part in _three(totals, f"{path}:{number}")]
    rows = numbered[items + 2 :]
    if len(rows) != distinct:
        raise FormatError(f"{path}: {distinct} rankings are announced, {len(rows)} follow")
    given = sum(_whole(line.partition(",")[0], f"{path}:{i}", _MOST) for i, line in rows)
    if given != people:
        raise FormatError(f"{path}: {people} people are announced, the rankings are of {given}")
    return rows


def _three(totals: str, where: str) -> list[str]:
    parts = totals.split(",")
    if len(parts) != 3:
        raise FormatError(f"{where}: expected three totals, found {totals[:60]!r}")
    return parts


def _whole(text: str, where: str, most: int) -> int:
    text = text.strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise FormatError(f"{where}: expected a whole number from 1, found {text[:40]!r}")
    return int(text)


def _task(name: str, rankings: NDArray[np.int64], groups: NDArray[np.int64]) -> Dataset:
    """Inputs and labels from rankings of ten items, best first."""
    position = np.argsort(rankings, axis=1, kind="stable")
    x, y = (_ranks(position[:, [item - 1 for item in items]]) for items in (KNOWN, ASKED))
    return Dataset(name, x, y, groups)


def _ranks(position: NDArray[np.int64]) -> NDArray[np.float32]:
    """One-hot ranks among some items [rows, items * items] from their positions among all [rows, items]."""
    rank = np.argsort(np.argsort(position, axis=1), axis=1)
    size = position.shape[1]
    held = np.asarray(rank[:, :, None] == np.arange(size), np.float32)
    return held.reshape(len(position), size * size)
