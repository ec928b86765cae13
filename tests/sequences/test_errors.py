"""SequenceSPL refuses bad input in one line that says what, where and, in a batch, which rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import semprola as sp
from semprola.sequences.machines import TagMachine

TAGS = ("B", "I", "O")
LOGITS = torch.zeros(2, 4, 3)


def layer(rules: Any = None) -> sp.SequenceSPL:
    return sp.SequenceSPL(TAGS, rules)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.zeros(2, 4, 5),), sp.LabelError, r"one column for each of B, I, O; not \(2, 4, 5\)"),
        ((torch.zeros(3),), sp.LabelError, r"\[\*batch, positions, 3\]"),
        ((torch.zeros(2, 0, 3),), ValueError, "no positions"),
        ((LOGITS.long(),), TypeError, "floating point"),
        (([[0.0]],), TypeError, "not list"),
        ((LOGITS, [4, 0]), ValueError, "1 to 4 tags, not 0 in row 1"),
        ((LOGITS, [5, 4]), ValueError, "1 to 4 tags, not 5 in row 0"),
        ((LOGITS, [-1, 4]), ValueError, "not -1 in row 0"),
        ((LOGITS, [1, 2, 3]), ValueError, r"lengths of shape \(3,\) do not fit batch \(2,\)"),
        ((LOGITS, [1.5, 2.0]), TypeError, "whole numbers"),
        ((LOGITS, torch.ones(2, dtype=torch.bool)), TypeError, "whole numbers"),
        ((LOGITS, "ab"), TypeError, "whole numbers"),
        ((LOGITS, [4, 4], torch.ones(2, 4)), ValueError, "pass only one of them"),
        ((LOGITS, None, torch.ones(2, 3)), ValueError, r"must be \(2, 4\), not \(2, 3\)"),
        ((LOGITS, None, torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0]])), ValueError, "false after it in row 1"),
        ((LOGITS, None, torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])), ValueError, "false after it in row 0"),
        ((LOGITS, None, torch.tensor([[2, 1, 1, 1], [1, 1, 1, 1]])), ValueError, "true and false"),
        ((LOGITS, None, torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])), ValueError, "not 0 in row 1"),
    ],
)
def test_arguments_of_the_layer(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        layer()(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_name_their_rows(value: float) -> None:
    logits = LOGITS.clone()
    logits[1, 2, 0] = value
    with pytest.raises(ValueError, match="logits must be finite: found NaN or infinite values in row 1"):
        layer()(logits)
    layer()(logits, lengths=[4, 2])  # they stand after the end
    with pytest.raises(ValueError, match=r"in row \(0, 1\)"):
        layer()(logits[None])


def test_lengths_without_sequences_name_their_rows() -> None:
    pairs = layer(sp.parse('(B -> "next=I") & (I -> "prev=B") & ~O'))
    with pytest.raises(sp.UnsatisfiableError, match="no sequence of 3 tags obeys the rules in rows 1, 2"):
        pairs(torch.zeros(4, 4, 3), lengths=[4, 3, 3, 2])
    with pytest.raises(sp.UnsatisfiableError, match="no sequence of 5 tags obeys the rules"):
        pairs(torch.zeros(5, 3))
    with pytest.raises(sp.UnsatisfiableError, match="no sequence of 1 tags obeys"):
        pairs(torch.zeros(5, 3), lengths=1)
    at_most_two = layer(TagMachine([[1, 1, 1], [2, 2, 2], [-1, -1, -1]], [False, True, True]))
    p = at_most_two(torch.randn(2, 6, 3), lengths=[1, 2])
    assert torch.isfinite(p.log_prob(p.mode)).all()
    with pytest.raises(sp.UnsatisfiableError, match="no sequence of 6 tags"):
        at_most_two(torch.zeros(6, 3))


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (torch.tensor([[0, 1, 2, 3], [0, 0, 0, 0]]), ValueError, "from 0 to 2, not 3 in row 0"),
        (torch.tensor([[0, 1, 2, 2], [0, -1, 0, 0]]), ValueError, r"not -1 in row 1 \(if -1 means .*log_marginal"),
        (torch.zeros(2, 3, dtype=torch.long), ValueError, r"tags \[\*batch, 4\], got a tensor of shape \(2, 3\)"),
        (torch.zeros(3, 4, dtype=torch.long), ValueError, r"do not fit batch \(2,\)"),
        (torch.full((2, 4), 0.5), ValueError, "whole numbers"),
        (torch.zeros(2, 4, dtype=torch.complex64), TypeError, "complex"),
        ([[0, 0, 0, 0]], TypeError, "not list"),
    ],
)
def test_tags(y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        layer()(LOGITS).log_prob(y)


@pytest.mark.parametrize(
    ("evidence", "error", "message"),
    [
        ({4: "B"}, sp.LabelError, "position 4: positions are 0 to 3"),
        ({0: "X"}, sp.LabelError, "'X', which is not a tag: the tags are B, I, O"),
        ({0: [3]}, sp.LabelError, "3, which is not a tag"),
        (torch.ones(2, 4, dtype=torch.bool), ValueError, r"bool evidence \[\*batch, 4, 3\]"),
        (torch.full((2, 4), -2), ValueError, "not -2"),
        (torch.full((2, 4), 3), ValueError, "not 3"),
    ],
)
def test_evidence(evidence: Any, error: type[Exception], message: str) -> None:
    for query in ("log_marginal", "condition"):
        with pytest.raises(error, match=message):
            getattr(layer()(LOGITS), query)(evidence)


def test_impossible_evidence_names_its_rows() -> None:
    bio = layer(sp.constraints.bio(TAGS))
    evidence = torch.tensor([[0, 1, -1, -1], [2, 1, -1, -1]])
    assert bio(LOGITS).log_marginal(evidence)[1] == -math.inf
    with pytest.raises(sp.UnsatisfiableError, match="probability zero in row 1"):
        bio(LOGITS).condition(evidence)


def test_other_arguments_of_queries() -> None:
    p = layer()(LOGITS)
    for k in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="positive whole number"):
            p.top_k(k)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'mode', 'hamming' or gains"):
        p.decode("f1")
    with pytest.raises(ValueError, match="gains must be finite"):
        p.decode(torch.full((2, 4, 3), math.nan))
    with pytest.raises(ValueError, match=r"gains \[\*batch, 4, 3\]"):
        p.decode(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="on_violation"):
        p.log_prob(torch.zeros(2, 4, dtype=torch.long), on_violation="project")
    with pytest.raises(ValueError, match="expected one of 'mode'"):
        p.to_dict("means")
    with pytest.raises(ValueError, match="different lengths"):
        layer()(LOGITS, [4, 3]).enumerate_support()
    with pytest.raises(sp.errors.IntractableError, match="more than 65,536 sequences"):
        layer()(torch.zeros(20, 3)).enumerate_support()
    with pytest.raises(ValueError, match="sizes of 0 or more"):
        p.sample((-1,))


def test_arguments_of_the_constructor() -> None:
    with pytest.raises(TypeError, match="transitions must be True or False"):
        sp.SequenceSPL(3, None, 5)  # type: ignore[arg-type]
    with pytest.raises(sp.LabelError, match="positive whole number or a list"):
        sp.SequenceSPL(0)
    with pytest.raises(sp.UnsatisfiableError, match="no sequence of tags of any length"):
        sp.SequenceSPL(TAGS, sp.logic.FALSE)
