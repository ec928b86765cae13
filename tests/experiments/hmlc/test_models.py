"""The methods on a small set: what each predicts, and that it learns."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from experiments_hmlc_made import made_set

import semprola as sp
from experiments.hmlc.data import phase
from experiments.hmlc.measuring import LabelSets, look, marginals_of, measure
from experiments.hmlc.models import Dropout, Model, circuit_for, clauses, plain_rule, rule_for
from experiments.hmlc.settings import Settings, default_settings
from experiments.hmlc.training import Average, choose_epochs, train
from semprola.constraints import hierarchy
from semprola.errors import SemprolaError
from semprola.training.metrics import hamming

SMALL = Settings(width=24, features=12, dropout=0.0, components=2, lr=1e-2, batch=32, epochs=40, every=2)
METHODS = ("spl", "spl-known", "fil", "hmcnn", "semantic-loss", "product-spl", "hmcnn-published")


def make(method: str, **changes: object) -> tuple[Model, object, object]:
    raw = made_set()
    settings = replace(SMALL, method=method, **changes)  # type: ignore[arg-type]
    rows = phase(raw, 0)
    rule = rule_for(settings, raw.graph, torch.tensor(raw.y, dtype=torch.float32))
    torch.manual_seed(0)
    model = Model(settings, rows.train.x.shape[1], rule, circuit_for(settings, rule), rows.train.y)
    return model, rows, rule


@pytest.mark.parametrize("method", METHODS)
def test_methods_learn_and_say_what_they_score(method: str) -> None:
    model, rows, rule = make(method)
    plain = plain_rule(made_set().graph)
    scored = torch.ones(6, dtype=torch.bool)
    before = look(model, rows.test, scored)
    train(model, rows.train, model.settings, 0, 40, lambda epoch, current: False)
    figures = measure(model, rows.test, rule, plain, scored)
    assert figures["exact"] > max(60, before["exact"])
    assert figures["auprc"] > 0.9
    assert figures["threshold"]["consistent"] == 100 or method in ("fil", "semantic-loss")
    assert figures["consistent"] == 100 or method in ("fil", "semantic-loss")
    if method in ("spl", "spl-known", "product-spl"):
        assert figures["obeys_options"] == 100
        assert figures["impossible"] == 0
        assert figures["empty"] == 0
    assert ("nll" in figures) == (not method.startswith("hmcnn"))


def test_dropout_keeps_its_share_and_scales_it_up() -> None:
    torch.manual_seed(0)
    layer = Dropout(0.7)
    x = torch.ones(300, 301, requires_grad=True)
    y = layer(x)
    kept = y != 0
    assert abs(float(kept.double().mean()) - 77 / 256) < 0.005
    assert y[kept].unique().tolist() == [pytest.approx(256 / 77)]
    assert not torch.equal(kept, layer(x) != 0)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(slope, y.detach())
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_the_loss_of_marginals() -> None:
    model, rows, _ = make("spl", marginal_weight=2.0)
    x, y = rows.train.x[:9], rows.train.y[:9]
    p = model(x)
    entropy = torch.nn.functional.binary_cross_entropy(p.mean, y, reduction="sum") / 9
    expected = -p.log_prob(y).mean() + 2 * entropy
    assert torch.allclose(model.loss(x, y), expected, atol=1e-4)
    model.loss(x, y).backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_options_are_what_all_rows_obey() -> None:
    _, _, rule = make("spl")
    assert rule.nonempty
    assert not rule.exclusive_siblings
    assert not make("hmcnn")[2].nonempty
    assert not make("spl", options=False)[2].nonempty


@pytest.mark.parametrize("options", [{}, {"nonempty": True}, {"exclusive_siblings": True}, {"mandatory_leaf": True}])
def test_clauses_mean_what_the_family_means(options: dict[str, bool]) -> None:
    rule = hierarchy(made_set().graph, edges="child-parent", **options)
    direct, general = sp.compile(rule), sp.compile(clauses(rule), labels=list(rule.names), backend="sdd")
    assert direct.labels == general.labels
    assert direct.model_count() == general.model_count()
    assert general.satisfied(torch.tensor(direct.enumerate())).all()


def test_the_circuit_of_the_paper() -> None:
    model, rows, _ = make("spl", circuit="sdd")
    assert model(rows.test.x).mode.shape == rows.test.y.shape
    with pytest.raises(SemprolaError, match="no circuit"):
        make("spl", circuit="bdd")


def test_a_gate_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.hmlc.models._MOST_WEIGHTS", 10)
    with pytest.raises(SemprolaError, match="use product-spl or hmcnn"):
        make("spl")


def test_epochs_are_chosen_on_validation_rows() -> None:
    model, rows, _ = make("fil", epochs=30, patience=3)
    calls = []

    def seen(current: Model) -> dict[str, float]:
        calls.append(current)
        return {"exact": -abs(len(calls) - 4.0), "auprc": 0.5}

    course = choose_epochs(model, rows.train, model.settings, 0, ("exact", "auprc"), seen)
    assert course.choices["exact"].epoch == 8
    assert course.choices["auprc"].epoch == 2
    assert course.epochs == [2, 4, 6, 8, 10, 12, 14]  # three looks without anything better end it
    restored = course.choices["auprc"].restore(model)
    assert all(
        torch.equal(a, b) for a, b in zip(restored.parameters(), course.choices["auprc"].parameters, strict=True)
    )


def test_a_run_depends_on_its_seed_alone() -> None:
    results = []
    for _ in range(2):
        model, rows, _ = make("spl", dropout=0.5)
        train(model, rows.train, model.settings, 3, 2, lambda epoch, current: False)
        results.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_average_of_parameters() -> None:
    model, _, _ = make("fil")
    average = Average(model, 0.9)
    for p in model.parameters():
        p.data.fill_(1.0)
    for _ in range(200):
        average.update()
    assert all(bool(torch.allclose(p, torch.ones_like(p), atol=1e-3)) for p in average.model.parameters())
    assert Average(model, 0.0).model is model


def test_known_label_sets() -> None:
    model, rows, _ = make("spl")
    sets = LabelSets(rows.train.y, lambda states: torch.zeros(len(states)))
    scores = sets.scores(model, rows.test.x, chunk=7)
    assert scores.shape == (len(rows.test), len(sets.states))
    one = model(rows.test.x[3:4]).log_prob(sets.states[2:3])
    assert torch.allclose(scores[3, 2], one[0], atol=1e-5)
    ranked, _ = model(rows.test.x).rescore(sets.states, sets.log_ratio, 0.5)
    right = 100 * float((ranked[:, 0] == rows.test.y).all(1).double().mean())
    assert sets.exact(scores, rows.test.y, 0.5) == pytest.approx(right)
    heavy = sets.exact(scores, rows.test.y, 1e6)  # the prior decides: the most frequent set for every row
    most = sets.states[sets.log_ratio.argmax()]
    assert heavy == pytest.approx(100 * float((rows.test.y == most).all(1).double().mean()))


def test_defaults_by_name() -> None:
    published = default_settings("hmcnn-published", "cellcycle")
    assert (published.batch, published.lr, published.epochs, published.choose) == (4, 1e-4, 106, False)
    assert default_settings("spl", "imclef07a").components == 1
    assert default_settings("spl", "cellcycle").components == 4
    with pytest.raises(SemprolaError, match="no method"):
        default_settings("sp1", "cellcycle")


@pytest.mark.parametrize("method", ["spl", "hmcnn"])
def test_large_circuits_are_asked_about_some_rows_at_a_time(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, rule = make(method)
    plain, scored = plain_rule(made_set().graph), torch.ones(6, dtype=torch.bool)
    whole = measure(model, rows.test, rule, plain, scored)
    assert whole["decoder"]["hamming"] == hamming(model(rows.test.x).decode("hamming"), rows.test.y)
    seen, marginals = look(model, rows.test, scored), marginals_of(model, rows.test)
    assert len(rows.test) > 16
    monkeypatch.setattr("experiments.hmlc.measuring._MOST_VALUES", 1)
    parts = measure(model, rows.test, rule, plain, scored)
    assert parts.keys() == whole.keys()
    assert all(
        parts[name] == (value if isinstance(value, dict) else pytest.approx(value)) for name, value in whole.items()
    )
    assert look(model, rows.test, scored) == pytest.approx(seen, rel=1e-6)
    torch.testing.assert_close(marginals_of(model, rows.test), marginals)
