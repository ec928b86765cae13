"""Distinct keys found piece by piece equal those of numpy, and the search can be stopped."""

from __future__ import annotations

import numpy as np
import pytest

from semprola.compiler import emission
from semprola.compiler.emission import distinct


@pytest.mark.parametrize("at_once", [1, 7, 100, 1 << 18])
@pytest.mark.parametrize("seed", range(10))
def test_the_same_as_numpy(at_once: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emission, "_AT_ONCE", at_once)
    rng = np.random.default_rng(seed)
    spread = int(rng.choice([1, 5, 1000, 1 << 60]))
    keys = rng.integers(-spread, spread, size=int(rng.integers(0, 5000)))
    found = distinct(keys, lambda: None)
    for ours, theirs in zip(found, np.unique(keys, return_inverse=True, return_counts=True), strict=True):
        assert np.array_equal(ours, theirs)


def test_most_keys_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emission, "_AT_ONCE", 50)
    keys = np.array([3] * 5000 + [1, 2, 9, 3, 9])
    values, place, times = distinct(keys, lambda: None)
    assert (values[place] == keys).all()
    assert times.tolist() == [1, 1, 5001, 2]


def test_many_keys_are_stopped_on_the_way() -> None:
    calls = 0

    def stop() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        distinct(np.arange(1 << 20), stop)
