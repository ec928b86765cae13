"""`--quick`: as many steps as fit into two minutes, announced before they are taken."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("typer")

from experiments import quick
from experiments.settings import Candidate, best_known


def known(methods: Sequence[str]) -> dict[str, Candidate]:
    return {method: best_known("simple-path", "generated", "wide", method) for method in methods}


@pytest.mark.parametrize("speed", [1e-4, 1e-2, 1.0])
def test_steps_fit_into_the_time(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    each = {"fil": 0.5 * speed, "semantic-loss": speed, "spl": 2.0 * speed}
    monkeypatch.setattr(quick, "_seconds_per_step", lambda task, method, candidate: each[method])
    asked = known(list(each))
    cut, expected = quick.fit_into(None, asked, 90.0)  # type: ignore[arg-type]
    assert list(cut) == list(asked)
    assert expected == pytest.approx(sum(each[method] * cut[method][1].steps for method in each))
    assert expected <= 90.0
    for method, (_, training) in cut.items():
        full = asked[method][1]
        assert training.steps <= full.steps
        assert training.evaluate_every <= training.steps
    if all(cut[method][1].steps < asked[method][1].steps for method in each):
        assert expected > 80.0  # what one method leaves goes to the others
