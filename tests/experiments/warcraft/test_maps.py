"""Maps, labels and scores, against networkx and by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from experiments.warcraft.dataset import generate, generated_maps, load_maps
from experiments.warcraft.paths import STEPS, distances, grid, least_cost_paths, path_costs, tenths
from experiments.warcraft.score import is_path, scores
from experiments.warcraft.terrain import COSTS, random_classes
from semprola.errors import FormatError, SemprolaError

SIZES = {"train": 3, "val": 2, "test": 2}


def directed(costs: np.ndarray, neighbours: int = 4) -> nx.DiGraph:
    """The grid with the cost of the cell that a step enters."""
    graph = grid(len(costs), neighbours).to_directed()
    for _, there, data in graph.edges(data=True):
        data["weight"] = int(tenths(costs[there]))
    return graph


@pytest.mark.parametrize(("side", "neighbours"), [(2, 4), (4, 4), (12, 4), (3, 8), (7, 8)])
def test_labels_are_least_cost_paths_and_ties_go_right_then_down(side: int, neighbours: int) -> None:
    random = np.random.default_rng(side)
    maps = np.array(COSTS)[random_classes(12, side, random)]
    edges = list(grid(side, neighbours).edges)
    for costs, label in zip(maps, least_cost_paths(maps, neighbours), strict=True):
        target = (side - 1, side - 1)
        every = nx.all_shortest_paths(directed(costs, neighbours), (0, 0), target, weight="weight")

        def steps(walk: list[tuple[int, int]]) -> list[int]:
            return [STEPS.index((b[0] - a[0], b[1] - a[1])) for a, b in pairwise(walk)]

        best = min(every, key=steps)
        used = {frozenset(step) for step in pairwise(best)}
        assert {frozenset(edges[i]) for i in np.flatnonzero(label)} == used
        graph = directed(costs, neighbours)
        least = nx.shortest_path_length(graph, (0, 0), target, weight="weight") + tenths(costs[0, 0])
        assert distances(costs[None], neighbours)[0, 0, 0] == least
        assert path_costs(label[None], costs[None])[0] == pytest.approx(least / 10)


def test_is_path_by_the_definition() -> None:
    side = 3
    edges = list(grid(side).edges)
    simple = {
        frozenset(frozenset(step) for step in pairwise(walk))
        for walk in nx.all_simple_paths(grid(side), (0, 0), (side - 1, side - 1))
    }
    rows = ((np.arange(2 ** len(edges))[:, None] >> np.arange(len(edges))) & 1).astype(np.float32)
    found = is_path(rows, side)
    assert found.sum() == len(simple) == 12
    for row in rows[found]:
        assert frozenset(frozenset(edges[i]) for i in np.flatnonzero(row)) in simple


def test_scores_tell_optimal_from_exact() -> None:
    costs = np.ones((2, 2, 2))
    labels = least_cost_paths(costs)
    other = 1 - labels  # the other way round costs the same
    measured = scores(np.stack([labels[0], other[0]]), labels, costs, 2)
    assert measured == {"exact": 50.0, "optimal": 100.0, "cost_ratio": 1.0, "hamming": 50.0, "consistent": 100.0}
    assert scores(np.ones((2, 4), np.float32), labels, costs, 2)["consistent"] == 0.0


def test_generated_maps_are_kept_and_repeatable(tmp_path: Path) -> None:
    first = generated_maps("train", seed=5, sizes=SIZES, cache=tmp_path)
    kept = generated_maps("train", seed=5, sizes=SIZES, cache=tmp_path)
    again = generated_maps("train", seed=5, sizes=SIZES, cache=tmp_path / "other")
    assert np.array_equal(first.pictures, kept.pictures)
    assert np.array_equal(first.pictures, again.pictures)
    assert isinstance(kept.pictures, np.memmap)
    assert first.pictures.shape == (3, 96, 96, 3)
    assert first.labels.shape == (3, 264)
    assert set(np.unique(first.costs)) <= {np.float32(np.float16(c)) for c in COSTS}
    assert not np.array_equal(first.pictures[:2], generated_maps("val", seed=5, sizes=SIZES, cache=tmp_path).pictures)


@pytest.mark.parametrize("side", [18, 24])
def test_other_sizes_have_the_same_layout(tmp_path: Path, side: int) -> None:
    generate(tmp_path / f"{side}x{side}", side=side, sizes=SIZES)
    maps = load_maps(tmp_path, "test", side=side)
    assert maps.pictures.shape == (2, side * 8, side * 8, 3)
    assert is_path(maps.labels, side).all()


def test_bad_files_get_one_line(tmp_path: Path) -> None:
    generate(tmp_path, sizes=SIZES)
    with pytest.raises(FormatError, match=r"there is no such file; --data must name"):
        load_maps(tmp_path / "nowhere", "train")
    with pytest.raises(SemprolaError, match="no part 'dev'"):
        load_maps(tmp_path, "dev")
    with pytest.raises(SemprolaError, match="no maps of 13 × 13 cells"):
        load_maps(tmp_path, "train", side=13)
    np.save(tmp_path / "train_vertex_weights.npy", np.zeros((3, 12, 11)))
    with pytest.raises(FormatError, match=r"vertex_weights.npy: expected a floating-point type \[3, 12, 12\], found"):
        load_maps(tmp_path, "train")
    np.save(tmp_path / "train_vertex_weights.npy", np.full((3, 12, 12), np.nan))
    with pytest.raises(FormatError, match="costs must be above 0 and at most 100"):
        load_maps(tmp_path, "train")
    (tmp_path / "train_maps.npy").write_bytes(b"no numbers")
    with pytest.raises(FormatError, match="not a numpy file"):
        load_maps(tmp_path, "train")


@pytest.mark.shared
def test_real_samples_load(tmp_path: Path, shared_data: Path) -> None:
    samples = np.load(shared_data / "warcraft" / "warcraft12_two_exact_samples.npz")
    for part in SIZES:
        np.save(tmp_path / f"{part}_maps.npy", samples["maps"])
        np.save(tmp_path / f"{part}_vertex_weights.npy", samples["vertex_weights"])
    maps = load_maps(tmp_path, "test")
    assert len(maps) == 2
    assert is_path(maps.labels, 12).all()
    # a path by four neighbours passes more cells than the published one by eight
    published = (samples["shortest_paths_8grid"] * tenths(maps.costs)).sum((1, 2))
    assert (distances(maps.costs)[:, 0, 0] >= published).all()
