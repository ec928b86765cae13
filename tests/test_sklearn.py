"""The estimator: rules and labels in every form, tables by name, labels that are not observed, and bad input."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semprola as sp

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from semprola.sklearn import SPLClassifier

RULES = "cat -> animal\ndog -> animal\n~(cat & dog)"
LABELS = ["cat", "dog", "animal"]
STATES = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]])


def data(count: int = 200, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    state = rng.integers(4, size=count)
    X = rng.normal(size=(count, 5))
    X[np.arange(count), state] += 3
    return X, STATES[state]


def model(**options: Any) -> SPLClassifier:
    return SPLClassifier(RULES, LABELS, **{"epochs": 40, "random_state": 0, **options})


def obeys(states: np.ndarray[Any, Any]) -> bool:
    rules = sp.And([sp.parse(line) for line in RULES.splitlines()])
    return bool(np.all(rules.evaluate(states.reshape(-1, 3).astype(bool), labels=LABELS)))


@pytest.mark.parametrize(
    "options", [{}, {"layer": "spl"}, {"components": 3}, {"layer": "spl", "components": 2, "units": 2}]
)
def test_predictions(options: dict[str, Any]) -> None:
    X, y = data()
    fitted = model(**options).fit(X, y)
    new, truth = data(300, 1)
    assert fitted.score(new, truth) > 0.8
    assert obeys(fitted.predict(new))
    marginals = fitted.predict_proba(new)
    assert marginals.shape == (300, 3)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(new)), marginals)
    states, probabilities = fitted.top_k(new, 4)
    assert states.shape == (300, 4, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)  # there are four models
    np.testing.assert_allclose((states * probabilities[..., None]).sum(1), marginals, atol=1e-5)
    drawn = fitted.sample(new[:5], 400, random_state=1)
    assert drawn.shape == (400, 5, 3)
    assert obeys(drawn)
    assert np.abs(drawn.mean(0) - marginals[:5]).max() < 0.12
    assert np.array_equal(drawn, fitted.sample(new[:5], 400, random_state=1))


@pytest.mark.parametrize(("old", "kind"), [("single", sp.SPL), ("product", sp.ProductSPL)])
def test_old_names_of_layers_work_in_this_release(old: str, kind: type) -> None:
    X, y = data(30)
    with pytest.warns(DeprecationWarning, match=rf"layer='{old}' is now '\w+"):
        fitted = model(layer=old, epochs=1).fit(X, y)
    assert isinstance(fitted.network_[-1], kind)


@pytest.mark.parametrize(
    "constraint",
    [
        sp.parse("(cat -> animal) & (dog -> animal)"),
        "(cat -> animal) & (dog -> animal)",
        "(cat -> animal) &\n(dog -> animal)",
        [("cat", "animal"), ("dog", "animal")],
        sp.constraints.hierarchy([("cat", "animal"), ("dog", "animal")]),
        sp.compile(sp.parse("(cat -> animal) & (dog -> animal)")),
        "file.txt",
        Path("file.txt"),
        "file.sp",
        None,
    ],
    ids=str,
)
def test_rules_in_every_form(constraint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.txt").write_text("# animals\ncat -> animal\n\ndog -> animal\n")
    sp.compile(sp.parse("(cat -> animal) & (dog -> animal)")).save("file.sp")
    X, y = data(60)
    fitted = SPLClassifier(constraint, LABELS, epochs=2).fit(X, y)
    assert list(fitted.labels_) == LABELS
    if constraint is not None:
        states = fitted.sample(X, 20, random_state=0)
        assert bool((states[..., 2] >= states[..., :2].max(-1)).all())


def test_pipeline_search_scores_clone_and_pickle() -> None:
    X, y = data(120)
    pipeline = make_pipeline(MinMaxScaler(), model(epochs=15, lr=0.03))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.5
    search = GridSearchCV(model(epochs=15), {"hidden": [(), (8,)], "layer": ["spl", "product-spl"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    fitted = model(epochs=5).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    fresh = clone(fitted)
    assert not hasattr(fresh, "network_")
    np.testing.assert_array_equal(fresh.fit(X, y).predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_matched_by_name(library: str) -> None:
    frames = pytest.importorskip(library)
    X, y = data(80)
    columns = {f"x{i}": X[:, i] for i in range(5)}
    labels = {name: y[:, i] for i, name in enumerate(LABELS)}
    plain = model(epochs=5).fit(X, y)
    named = model(epochs=5).fit(frames.DataFrame(columns), frames.DataFrame(dict(reversed(labels.items()))))
    assert list(named.labels_) == LABELS
    assert list(named.feature_names_in_) == list(columns)
    np.testing.assert_allclose(named.predict_proba(frames.DataFrame(columns)), plain.predict_proba(X))
    own = SPLClassifier(RULES, epochs=1).fit(frames.DataFrame(columns), frames.DataFrame(labels))
    assert list(own.labels_) == LABELS
    with pytest.raises(sp.LabelError, match="y has no column 'dog'"):
        model().fit(X, frames.DataFrame({name: labels[name] for name in ("cat", "animal")}))
    with pytest.raises(sp.LabelError, match="y names 'bird', which is not among cat, dog, animal"):
        model().fit(X, frames.DataFrame({**labels, "bird": labels["cat"]}))
    with pytest.raises(sp.LabelError, match="the constraint mentions 'animal', which is not listed"):
        SPLClassifier(RULES).fit(X, frames.DataFrame({name: labels[name] for name in ("cat", "dog")}))


def test_columns_without_names_in_another_order_get_a_hint() -> None:
    X, y = data(100)
    rules = "(cat -> animal) & (dog -> animal)"  # so the labels are cat, animal, dog
    with pytest.raises(sp.SemprolaError, match=r"columns of y are taken as cat, animal, dog: if .* pass labels="):
        SPLClassifier(rules).fit(X, y)
    wrong = np.tile([1, 0, 0], (100, 1))
    with pytest.raises(sp.SemprolaError, match=r"row 0: cat -> animal \(cat=1, animal=0\); row 1: .*; …$"):
        SPLClassifier(rules, labels=LABELS).fit(X, wrong)


def test_labels_that_are_not_observed() -> None:
    X, y = data(400)
    hidden = y.astype(float)
    hidden[np.random.default_rng(0).random(y.shape) < 0.4] = np.nan
    fitted = model().fit(X, hidden)
    new, truth = data(300, 1)
    assert fitted.score(new, truth) > 0.75
    hidden[7] = [1, np.nan, 0]
    with pytest.raises(sp.SemprolaError, match="1 of 400 rows of y violate the constraint: row 7: cat -> animal"):
        model().fit(X, hidden)


def test_scores_of_labels_that_are_not_observed() -> None:
    X, y = data(300)
    hidden = y.astype(float)
    hidden[np.random.default_rng(0).random(y.shape) < 0.4] = np.nan
    fitted = model(epochs=10).fit(X, hidden)
    predicted = fitted.predict(X)
    seen = ~np.isnan(hidden)
    right = ((predicted == hidden) | ~seen).all(1)
    told = seen.any(1)
    assert not told.all()
    assert fitted.score(X, hidden) == right[told].mean() < 1
    weight = np.arange(300) % 3
    assert fitted.score(X, hidden, weight) == np.average(right[told], weights=weight[told])
    assert fitted.score(X, y) == accuracy_score(y, predicted)
    scores = cross_val_score(model(epochs=10), X, hidden, cv=KFold(3))
    assert scores.min() > 0.6
    with pytest.raises(sp.LabelError, match=r"^y has no observed label to score$"):
        fitted.score(X, np.full(y.shape, np.nan))
    with pytest.raises(ValueError, match="X has 300 rows, but y has 299"):
        fitted.score(X, hidden[1:])
    with pytest.raises(NotFittedError):
        model().score(X, y)


def test_rows_without_a_valid_completion_are_named_with_their_rules() -> None:
    frames = pytest.importorskip("pandas")
    X, y = data(30)
    table = frames.DataFrame(y.astype(float), columns=LABELS, index=[f"patient {i}" for i in range(30)])
    table.loc["patient 7"] = [1, np.nan, 0]
    table.loc["patient 9"] = [1, 1, np.nan]
    with pytest.raises(sp.SemprolaError) as caught:
        model().fit(X, table)
    reasons = ["cat -> animal (cat=1, animal=0)", "~(cat & dog) (cat=1, dog=1)"]
    assert str(caught.value) == (
        f"2 of 30 rows of y violate the constraint: row patient 7: {reasons[0]}; row patient 9: {reasons[1]}"
    )
    found = sp.violations(sp.And([sp.parse(line) for line in RULES.splitlines()]), table)
    assert [str(each) for each in found] == [f"row patient 7: {reasons[0]}", f"row patient 9: {reasons[1]}"]
    with pytest.raises(sp.SemprolaError, match=r"row 7: \(cat -> pet\) & \(pet -> animal\) \(cat=1, animal=0\)"):
        SPLClassifier("cat -> pet\npet -> animal", ["cat", "pet", "animal"]).fit(
            X[:8], table.to_numpy()[:8] * [1, np.nan, 1]
        )
    table.loc["patient 3", "dog"] = 2
    with pytest.raises(sp.LabelError, match="row patient 3, label 'dog' is 2"):
        model().fit(X, table)
    with pytest.raises(ValueError, match="row patient 3, label 'dog' is 2"):
        sp.violations("dog", table[["dog"]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predictions_as_named_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    X, y = data(60)
    inputs = frames.DataFrame({f"x{i}": X[:, i] for i in range(5)})
    fitted = model(epochs=2).fit(inputs, y)
    plain = fitted.predict(inputs)
    assert isinstance(plain, np.ndarray)  # as in scikit-learn, whatever X is
    assert clone(fitted.set_output(transform=library)).fit(inputs, y).predict(inputs).shape == (60, 3)
    for answer, expected in ((fitted.predict(inputs), plain), (fitted.predict_proba(inputs), None)):
        assert isinstance(answer, frames.DataFrame)
        assert list(answer.columns) == LABELS
        assert expected is None or (answer.to_numpy() == expected).all()
    assert fitted.score(inputs, y) == (plain == y).all(1).mean()
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(inputs)), fitted.predict_proba(inputs))
    if library == "pandas":
        inputs.index = [f"patient {i}" for i in range(60)]
        assert list(fitted.predict(inputs).index) == list(inputs.index)
        plainly = model(epochs=1).set_output(transform=library).fit(X, y)
        assert list(plainly.predict(X).index) == list(range(60))
    assert isinstance(fitted.set_output().predict(inputs), frames.DataFrame)
    assert isinstance(fitted.set_output(transform="default").predict(inputs), np.ndarray)
    classes = SPLClassifier(epochs=1).set_output(transform=library).fit(inputs, np.where(y[:, 0], "yes", "no"))
    assert isinstance(classes.predict(inputs), frames.Series)
    assert list(classes.predict_proba(inputs).columns) == ["no", "yes"]
    with pytest.raises(ValueError, match="transform must be one of 'default', 'pandas', 'polars', not 'arrow'"):
        fitted.set_output(transform="arrow")


def test_missing_entries_of_data_frames() -> None:
    frames = pytest.importorskip("pandas")
    X, y = data(30)
    table = frames.DataFrame(y, columns=LABELS).astype("Int64")
    table.loc[3, "dog"] = frames.NA
    plain = table.astype(float).to_numpy()
    assert np.isnan(plain[3, 1])
    np.testing.assert_array_equal(model(epochs=1).fit(X, table).predict(X), model(epochs=1).fit(X, plain).predict(X))


def test_partial_fit() -> None:
    X, y = data(200)
    fitted = model(lr=0.03)
    for _ in range(15):
        fitted.partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert fitted.score(*data(200, 1)) > 0.75
    classes = SPLClassifier(lr=0.03, random_state=0)
    classes.partial_fit(X[:50], y[:50, 2], classes=[0, 1]).partial_fit(X[50:], y[50:, 2])
    assert set(classes.predict(X)) <= {0, 1}
    with pytest.raises(ValueError, match="y has the class"):
        classes.partial_fit(X[:50], np.full(50, 7))


def test_weights() -> None:
    X, y = data(200)
    wrong = y.copy()
    wrong[100:] = [1, 1, 0]
    weight = np.r_[np.ones(100), np.zeros(100)]
    assert model().fit(X, wrong, sample_weight=weight).score(*data(200, 1)) > 0.75
    with pytest.raises(sp.SemprolaError, match=r"100 of 200 rows of y violate the constraint: row 100: .*; row 101: "):
        model().fit(X, wrong)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        model().fit(X, y, sample_weight=-weight)
    assert model(epochs=2, label_weight=[0.0, 1.0, 2.0]).fit(X, y).predict(X).shape == (200, 3)


def test_decoders() -> None:
    X, y = data(100)
    for decode in ("mode", "hamming", "f1"):
        assert obeys(model(epochs=2, decode=decode).fit(X, y).predict(X))


def test_classes_in_one_column() -> None:
    X, y = data(200)
    names = np.array(["none", "animal", "cat", "dog"])[(y * [1, 2, 1]).sum(1)]
    fitted = SPLClassifier(random_state=0, epochs=30).fit(X, names)
    assert sorted(fitted.classes_) == sorted(set(names))
    np.testing.assert_allclose(fitted.predict_proba(X).sum(1), 1)
    assert set(fitted.predict(X)) <= set(names)
    with pytest.raises(sp.LabelError, match="the constraint needs one column per label"):
        SPLClassifier("a -> b").fit(X, names)


def test_labels_do_not_name_classes() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    column = (X[:, 0] > 0).astype(int)
    with pytest.raises(sp.LabelError, match=r"one class per row, .* leave out labels=, or pass a column per label"):
        SPLClassifier(labels=["cat"], epochs=1).fit(X, column)
    assert SPLClassifier(labels=["cat"], epochs=1).fit(X, column[:, None]).labels_ == ("cat",)
    assert SPLClassifier(epochs=1).fit(X, column).labels_ == ("0", "1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "triple"}, "layer must be 'spl' or 'product-spl', not 'triple'"),
        ({"validation_fraction": 1.0}, "validation_fraction must be from 0 to below 1"),
        ({"units": 2}, "units= is for layer='spl'"),
        ({"epochs": 0}, "epochs must be a positive whole number"),
        ({"constraint": "cat ->"}, "expected"),
        ({"constraint": 3}, "a constraint is a formula, its text"),
        ({"labels": ["cat", "dog"]}, r"y has shape \[30, 3\], expected \[\*batch, 2\]"),
        ({"labels": ["cat", "dog", "bird"]}, "the constraint mentions 'animal'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SPLClassifier(**{"constraint": RULES, "labels": LABELS, **options}).fit(*data(30))


def test_bad_tables() -> None:
    X, y = data(30)
    with pytest.raises(sp.LabelError, match="row 2, label 'dog' is 7"):
        model().fit(X, np.where(np.arange(30)[:, None] == 2, [0, 7, 1], y))
    with pytest.raises(ValueError, match="X has 30 rows, but y has 29"):
        model().fit(X, y[:29])
    with pytest.raises(sp.LabelError, match="where not observed: row 0, label 'cat' is yes"):
        model().fit(X, np.full((30, 3), "yes"))
    with pytest.raises(ValueError, match="NaN"):
        model().fit(np.where(X > 1, np.nan, X), y)


def test_prediction_sets(tmp_path: Path) -> None:
    X, y = data(800)
    fitted = model(epochs=10).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="call calibrate_sets first"):
        fitted.predict_sets(X[500:])
    fitted.calibrate_sets(X[200:500], y[200:500])
    for coverage in (0.6, 0.9):
        sets = fitted.predict_sets(X[500:], coverage)
        assert all(obeys(found.states) for found in sets)
        hits = np.mean([truth in found for truth, found in zip(y[500:], sets, strict=True)])
        assert hits > coverage - 0.06
    assert np.mean([len(found) for found in sets]) < 3
    with pytest.raises(ValueError, match="300 calibration rows are too few for a coverage"):
        fitted.predict_sets(X[500:], 0.999)
    with pytest.raises(sp.LabelError, match="labels are all observed"):
        fitted.calibrate_sets(X[:2], [[0, np.nan, 1], [0, 0, 0]])
    pytest.importorskip("safetensors")
    again = sp.load(sp.save(fitted, tmp_path / "model"))
    assert [len(found) for found in again.predict_sets(X[500:])] == [
        len(found) for found in fitted.predict_sets(X[500:])
    ]


@pytest.mark.parametrize("device", ["nodev", "", "meta", 3.5])
def test_a_device_that_is_not_there(device: Any) -> None:
    X, y = data(30)
    for call in (model(device=device).fit, model(device=device).partial_fit):
        with pytest.raises(ValueError, match=r"^device .* cannot be used here: .*: try device 'cpu'$"):
            call(X, y)
    fitted = model(epochs=1).fit(X, y)
    with pytest.raises(ValueError, match=r"^device .* cannot be used here"):
        fitted.set_params(device=device).predict(X)


def test_a_model_is_saved_whole_when_its_rules_file_is_gone(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    X, y = data(30)
    path = tmp_path / "rules.txt"
    path.write_text(RULES)
    fitted = SPLClassifier(str(path), LABELS, epochs=1, random_state=0).fit(X, y)
    path.unlink()
    sp.save(fitted, tmp_path / "model")
    loaded = sp.load(tmp_path / "model")
    assert loaded.constraint.model_count() == len(STATES)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
