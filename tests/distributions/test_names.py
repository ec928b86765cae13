"""Values and results by name: dicts, data frames, and what is wrong with them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
import zoo
from selection import spread
from worlds import LAYERS, Setting, world

import semprola as sp

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("each_engine")
NAN = math.nan
PETS = sp.compile("(cat -> animal) & (dog -> animal)")
Y = torch.tensor([[1.0, 1, 0], [0, 1, 1]])


def pets(batch: tuple[int, ...] = (2,)) -> Any:
    return sp.constrain(torch.linspace(-1, 1, math.prod(batch) * 3).reshape(*batch, 3), PETS)


def shuffled(y: torch.Tensor, labels: Any) -> Any:
    """A data frame with the columns in another order."""
    return pd.DataFrame(y.numpy(), columns=list(labels))[list(labels)[::-1]]


@pytest.mark.parametrize(
    ("name", "layer"),
    spread(
        itertools.product(["cat_dog_animal", "given_two", "family_hierarchy", "quoted_names"], list(LAYERS)[::2]), 12
    ),
)
def test_queries_by_name(name: str, layer: str) -> None:
    w = world(Setting(zoo.case(name), layer, batch=(3,)))
    y = w.some_models(1)[0]
    labels = w.case.columns
    frame = shuffled(y, labels)
    w.close(w.p.log_prob(frame), w.p.log_prob(y))
    w.close(w.p.log_prob(dict(frame.items())), w.p.log_prob(y))
    assert w.p.support.check(frame).all()
    partial = torch.full_like(y, NAN)
    partial[:, 1] = y[:, 1]
    evidence = {labels[1]: y[:, 1]}
    w.close(w.p.log_marginal(evidence), w.p.log_marginal(partial))
    w.close(w.p.condition(evidence).mean, w.p.condition(partial).mean)
    gains = torch.zeros_like(y)
    gains[:, 0] = 5.0
    assert torch.equal(w.p.decode({labels[0]: 5.0}), w.p.decode(gains))
    if w.x is not None:
        for x in (shuffled(w.x, w.case.given), {n: w.x[:, i] for i, n in enumerate(w.case.given)}):
            w.close(w.layer(w.z, given=x).mean, w.p.mean)


@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3)])
def test_numbers_are_broadcast(batch: tuple[int, ...]) -> None:
    p = pets(batch)
    q = p.condition({"cat": 1})
    assert q.batch_shape == batch
    assert (q.mean[..., 0] == 1).all()
    torch.testing.assert_close(p.condition({}).mean, p.mean)
    assert p.log_marginal({"cat": torch.ones(5, *batch)}).shape == (5, *batch)


def test_atoms_and_numbers_are_names() -> None:
    torch.testing.assert_close(pets().condition({sp.Bool("cat"): 1}).mean, pets().condition({"cat": 1}).mean)
    p = sp.constrain(torch.zeros(2), sp.from_dimacs("p cnf 2 1\n1 2 0\n"))
    assert p.condition({1: 0}).mode.tolist() == [0, 1]


def test_what_is_missing_in_a_frame_is_not_observed() -> None:
    frame = pd.DataFrame({"cat": [1, None], "dog": pd.array([None, 0], dtype="Int64")})
    expected = torch.tensor([[1, NAN, NAN], [NAN, NAN, 0]])
    torch.testing.assert_close(pets().log_marginal(frame), pets().log_marginal(expected))
    assert torch.equal(
        pets(()).condition(pd.Series({"cat": 1.0, "dog": None})).mean, pets(()).condition({"cat": 1}).mean
    )


def test_to_dict() -> None:
    p = pets(())
    assert p.to_dict() == dict(zip(p.labels, p.mode.int().tolist(), strict=True))
    assert p.to_dict("marginals") == dict(zip(p.labels, p.mean.tolist(), strict=True))
    states, log_probs = p.top_k(2)
    top = p.to_dict("top_k", k=2)
    assert top["cat"] == states[:, 0].int().tolist()
    assert top["log_prob"] == log_probs.tolist()
    wide = pets((2, 3)).to_dict()
    assert torch.equal(torch.tensor(wide["dog"]), pets((2, 3)).mode[..., 2].long())
    clash = sp.constrain(torch.zeros(2), "log_prob | a").to_dict("top_k", k=1)
    assert set(clash) == {"log_prob", "a", "log_prob_"}


@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3)])
def test_to_frame(batch: tuple[int, ...]) -> None:
    p = pets(batch)
    rows = math.prod(batch)
    mode, marginals, top = p.to_frame(), p.to_frame("marginals"), p.to_frame("top_k", k=2)
    assert list(mode.columns) == list(marginals.columns) == list(PETS.labels)
    assert mode.shape == marginals.shape == (rows, 3)
    assert top.shape == (2 * rows, 4)
    assert top.index.names[-1] == "rank"
    assert torch.equal(torch.tensor(mode.to_numpy()).reshape(*batch, 3), p.mode.long())
    torch.testing.assert_close(torch.tensor(marginals.to_numpy()).reshape(*batch, 3), p.mean)
    # what comes out goes in again
    if len(batch) == 1:
        torch.testing.assert_close(p.log_prob(mode), p.log_prob(p.mode))


def test_pandas_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(sp.SemprolaError, match=r"pip install 'semprola\[pandas\]'"):
        pets().to_frame()


FRAME = pd.DataFrame(Y.numpy(), columns=["cat", "animal", "dog"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pets().log_prob(FRAME[["cat", "dog"]]), "y has no column 'animal'"),
        (lambda: pets().log_prob(FRAME[["cat"]]), "y has no column 'animal' (and 1 more)"),
        (
            lambda: pets().log_prob(FRAME.rename(columns={"dog": "dgo"})),
            "y names 'dgo', which is not a label: did you mean 'dog'?",
        ),
        (
            lambda: pets().log_prob(FRAME.assign(zebra=1)),
            "y names 'zebra', which is not among cat, animal, dog",
        ),
        (
            lambda: pets().log_prob(pd.concat([FRAME, FRAME["cat"]], axis=1)),
            "y has the column 'cat' twice",
        ),
        (
            lambda: pets().condition({"horse": 1}),
            "evidence names 'horse', which is not among cat, animal, dog",
        ),
        (lambda: pets().condition({"cat": "yes"}), "evidence: the values of 'cat' are not numbers: 'yes'"),
        (
            lambda: pets().condition({"cat": [1, 0], "dog": [1, 0, 1]}),
            "the columns of evidence have different shapes: (2,), (3,)",
        ),
        (lambda: pets().decode({"cow": 1.0}), "utilities names 'cow', which is not among cat, animal, dog"),
        (
            lambda: sp.SPL(2, sp.compile("a <-> x", given=["x"]))(torch.zeros(2, 2), given={"z": 1}),
            "given names 'z', which is not among x",
        ),
    ],
)
def test_a_wrong_name_is_an_error(call: Any, message: str) -> None:
    with pytest.raises(sp.LabelError) as caught:
        call()
    assert str(caught.value) == message


def test_wrong_values_by_name() -> None:
    with pytest.raises(ValueError, match="evidence must contain only 0, 1, and NaN"):
        pets().condition({"cat": 0.5})
    with pytest.raises(ValueError, match="y must contain only 0 and 1"):
        pets().log_prob({"cat": 0.5, "dog": 0, "animal": 1})
    with pytest.raises(ValueError, match="does not fit batch"):
        pets().condition({"cat": torch.ones(3)})
    with pytest.raises(ValueError, match="expected one of 'mode', 'marginals', 'top_k', not 'best'"):
        pets().to_dict("best")


def test_polars_frames() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"dog": [0, 1], "cat": [1, 0], "animal": [1, 1]})
    torch.testing.assert_close(pets().log_prob(frame), pets().log_prob(Y))
    partial = pl.DataFrame({"cat": [1, None]})
    torch.testing.assert_close(
        pets().log_marginal(partial), pets().log_marginal(torch.tensor([[1, NAN, NAN], [NAN] * 3]))
    )


def test_circuits_formulas_and_layers_match_columns_by_name() -> None:
    wrong = pd.DataFrame({"animal": [0, 1], "dog": [0, 0], "cat": [1, 1]})
    formula = sp.parse("(cat -> animal) & (dog -> animal)")
    assert formula.evaluate(wrong).tolist() == [False, True]
    assert formula.evaluate(wrong.assign(other=2)).tolist() == [False, True]
    assert PETS.satisfied(wrong).tolist() == [False, True]
    assert PETS.satisfied({"cat": 1, "animal": 1, "dog": 0}) is True
    with pytest.raises(sp.LabelError, match="'animal'"):
        formula.evaluate(wrong[["cat", "dog"]])
    with pytest.raises(sp.LabelError, match="y has no column 'cat'"):
        PETS.satisfied(wrong[["animal", "dog"]])
    inputs = sp.compile("(night -> ~a) & (a | b)", given=["night"])
    rows = pd.DataFrame({"b": [1, 1], "a": [1, 0]})
    assert inputs.satisfied(rows, given={"night": [1, 1]}).tolist() == [False, True]
    layer = sp.SPL(2, PETS).start_at(shuffled(Y, PETS.labels), smoothing=0.01)
    same = sp.SPL(2, PETS).start_at(Y, smoothing=0.01)
    torch.testing.assert_close(layer(torch.zeros(2)).mean, same(torch.zeros(2)).mean)
    with pytest.raises(sp.LabelError, match="y has no column 'animal'"):
        layer.start_at({"cat": [1], "dog": [0]})
