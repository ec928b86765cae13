"""A fixed part of the fuzzer, and that it sees: every option is drawn, known faults are found, cases become small."""

from __future__ import annotations

import inspect
import itertools
import random
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import worlds
import zoo
from selection import spread

import semprola as sp
from semprola.circuit import Circuit
from semprola.compiler import contradiction, pipeline
from semprola.constraints.hierarchy import emission
from semprola.distributions import PoolDistribution
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.pool.rejection import Drawn
from semprola.engine.backends import torch_passes
from tests.fuzz import cases, sequences, splits
from tests.fuzz.campaign import campaign, case_of, program, run, still_fails
from tests.fuzz.drawing import FAMILIES, PLAIN, Draw
from tests.fuzz.shrinking import shrink

SEED, CASES, PARTS = 20261118, 100, 4
pytestmark = pytest.mark.filterwarnings("ignore:hierarchy:UserWarning")  # those that look upside down

NOT_CONSTRAINTS = {"bio", "suggest", "hierarchy_mode"}
"""Functions of `sp.constraints` that make rules for sequences (drawn there), advice, or a decoded state; or that go."""
NOT_DRAWN = {"self", "in_features", "constraint", "labels", "device", "dtype", "replicas", "mixtures"} | {
    "timeout",
    "max_nodes",
    "memory",
}
"""Arguments of layers that `cases.Case` sets itself, second names, and limits of compilation."""


@pytest.mark.parametrize("part", spread(range(PARTS), 2))
def test_a_fixed_part_is_clean(part: int) -> None:
    shown: list[str] = []
    numbers = itertools.islice(itertools.count(part, PARTS), CASES // PARTS)
    campaign(SEED, numbers, time.monotonic() + 600, 0.3, lambda failure: shown.append(program(failure)))
    assert not shown, "\n\n".join(shown)


def test_a_case_is_a_function_of_its_seed() -> None:
    assert [case_of(1, n) for n in range(50)] == [case_of(1, n) for n in range(50)]
    assert case_of(1, 0) != case_of(2, 0)


def test_every_family_is_drawn_with_every_option() -> None:
    public = {name: getattr(sp.constraints, name) for name in sp.constraints.__all__}
    functions = {name for name, found in public.items() if inspect.isfunction(found)}
    numbers = {"all_different", "element", "maximum", "minimum", "number"}
    assert functions - NOT_CONSTRAINTS - numbers == set(FAMILIES)
    texts = " ".join(Draw(random.Random(i), PLAIN).number() for i in range(400))
    assert [name for name in (*numbers, "table") if f"sp.constraints.{name}(" not in texts] == []
    for name in FAMILIES:
        drawn = [", ".join(FAMILIES[name](Draw(random.Random(i), PLAIN))) for i in range(200)]
        options = [p.name for p in inspect.signature(public[name]).parameters.values() if p.kind is p.KEYWORD_ONLY]
        assert [o for o in options if not any(f"{o}=" in text for text in [*drawn, texts])] == [], name


def test_every_layer_is_drawn_with_every_option() -> None:
    drawn = " ".join(cases.draw_layer(random.Random(i)) for i in range(2000))
    for layer in (sp.SPL, sp.ProductSPL):
        options = set(inspect.signature(layer.__init__).parameters) - NOT_DRAWN
        assert [option for option in options if f"{option}=" not in drawn] == []
    listed = [options for name, options in worlds.LAYERS.items() if "elementwise" in name]
    assert all("".join(f", {k}={v!r}" for k, v in options.items()) in drawn for options in listed)


def test_every_engine_type_and_family_of_the_zoo_is_drawn() -> None:
    drawn = [case_of(3, n) for n in range(1500)]
    labels = [case for case in drawn if isinstance(case, cases.Case)]
    assert len(drawn) - len(labels) > 100
    assert {case.dtype for case in labels} == {"float32", "float64"}
    assert {case.batch for case in labels} == set(cases.BATCHES)
    assert {"torch"} < {case.engine for case in labels} or not worlds.BATCHES
    small = {case.name for case in zoo.FAMILIES if not case.large}
    assert len({name for name in small if any(f"'{name}'" in case.constraint for case in labels)}) > len(small) // 2


def _dead_sums_count(monkeypatch: pytest.MonkeyPatch) -> str:
    """Fault 1 of the issue that asked for the fuzzer: its probabilities sum to 0.71."""

    def arriving(plan: Any, flows: Any, step: Any, root: Any = None) -> Any:
        if step.rows.stop - 1 == plan.root_row:
            ones = flows.new_ones((step.sums, flows.shape[1]))
            return ones if root is None else ones.mul_(root)
        return torch_passes.gather_sum(flows, step.parents, step.parent_offsets)

    monkeypatch.setattr(torch_passes, "_arriving", arriving)
    monkeypatch.setattr(emission, "pruned", lambda *arrays: arrays)
    monkeypatch.setattr(Circuit, "_check", lambda circuit: None)
    return r"constraint=.sp.constraints.hierarchy\(.*, nonempty=True[^&|^]*\).,.*labels=None"


def _log_z_counts_twice(monkeypatch: pytest.MonkeyPatch) -> str:
    """Fault 2: log Z of a mixture of one unnormalised part."""

    def log_partition(self: Any) -> Any:
        alone = self.count == 1 and not self.components.is_normalized
        return self.components.log_z[0] if alone else whole(self)

    whole = Evaluator.log_partition.fget
    monkeypatch.setattr(Evaluator, "log_partition", property(log_partition))
    return r"layers=\(.sp.ProductSPL[^*]*\).,\), mix=True"


def _contradictions_forget_labels(monkeypatch: pytest.MonkeyPatch) -> str:
    """Fault 3: the search for a contradiction knows only labels of other rules, and ends in a KeyError."""
    real = contradiction.explained

    def explained(constraint: Any, budget: Any) -> Any:
        first, *others = contradiction.written_rules(constraint)
        known = {name: 0 for rule in others for name in rule.labels}
        return real(constraint, budget) if [known[name] for name in first.labels] else None

    monkeypatch.setattr(pipeline, "explained", explained)
    return "sp.constraints"


@pytest.mark.parametrize("fault", [_dead_sums_count, _log_z_counts_twice, _contradictions_forget_labels])
def test_faults_that_strangers_found_are_found(
    fault: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the cases that have what the fault is about; then one of them becomes small."""
    pattern = fault(monkeypatch)
    many = (case_of(7, number) for number in range(4000))
    some = (replace(case, engine="torch") for case in many if re.search(pattern, f"{case}"))
    for case in itertools.islice(some, 60):
        kinds = [(name, type(error).__name__) for name, error in run(case, share=0.0)]
        if kinds:
            small = shrink(case, lambda other, kind=kinds[0]: still_fails(other, kind), seconds=3.0)
            assert len(small.constraint) <= len(case.constraint)
            assert still_fails(small, kinds[0])
            return
    pytest.fail("not found")


def test_a_case_becomes_small() -> None:
    """What is left is what the failure needs."""
    text = "(sp.Or([sp.Bool('a'), sp.Bool('b')]) & sp.constraints.cardinality(['a', 'b', 'c'], at_least=1, at_most=2))"
    case = cases.Case(1, text, labels=("a", "b", "c", "d"), backend="sdd", mix=True, scale=2.0, dtype="float32")
    small = shrink(case, lambda other: "at_least" in other.constraint and "'b'" in other.constraint)
    assert small == cases.Case(1, "sp.constraints.cardinality(['b'], at_least=1)")


def test_what_rules_of_sequences_mean() -> None:
    """The referee itself, by hand."""
    assert sequences.obeys("'B I*'", ("B", "I", "I"))
    assert not sequences.obeys("'B I*'", ("B", "O"))
    assert sequences.obeys("'B | I & O'", ("B",))
    assert not sequences.obeys("'!(.* O .* B .*)'", ("O", "I", "B"))
    assert sequences.obeys("(sp.at_most(0, ['B']) | sp.at_least(1, ['O']))", ("B", "O"))
    assert not sequences.obeys("sp.Bool('I') >> (sp.Bool('prev=B') | sp.Bool('last'))", ("I", "O"))


def test_splits_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "_SAVE_EVERY", 3)
    out = tmp_path / "checks.json"
    for cases_wanted in ("3", "8"):
        monkeypatch.setattr(sys, "argv", ["splits", "--cases", cases_wanted, "--out", str(out)])
        assert splits.main() == 0
    found = splits.read_json(out)
    for tally in found["engines"].values():
        assert tally["cases"] == 8
        assert tally["modes"] == tally["proven"] == 16
    assert "| constraints | 8 | 8 |" in splits.said(found)
    found["engines"]["torch"]["faults"] = [{"number": 3, "error": "AssertionError: a bug that was mended"}]
    splits.write_json(out, found)
    assert splits.main() == 0
    assert splits.read_json(out)["engines"]["torch"]["cases"] == 8


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("log_prob_gradient", lambda p, y, samples, _: 0.5 * p.log_score(y), "biased"),
        ("draw", lambda p, shape, **_: Drawn(p.mode.expand(*shape, *p.mode.shape), torch.ones(2)), "samples"),
        ("log_prob_bounds", lambda p, y: (p.log_score(y) + 0.1, p.log_score(y)), ""),
    ],
)
def test_wrong_pools_are_found(name: str, wrong: Callable[..., Any], message: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(PoolDistribution, name, wrong)
    tally = splits.empty()
    for number in range(12):
        splits._add(tally, number, "torch")
    assert any(message in fault["error"] for fault in tally["faults"])


def test_the_page_shows_the_results_of_split_checks() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    found = splits.read_json(root / splits.RESULTS)
    assert splits.said(found) in (root / splits.PAGE).read_text(encoding="utf-8")
    assert not any(tally["faults"] for tally in found["engines"].values())
