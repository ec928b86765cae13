"""What notebooks show, through IPython's own formatters: quick, safe, and never in the way of the text."""

from __future__ import annotations

import time
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
import torch

import semprola as sp
from semprola.compiler import budget

formatters = pytest.importorskip("IPython.core.formatters")
RULES = 'cat -> animal\ndog -> animal\n"<b>&" | cat'
VOID = {"br", "circle", "line"}


def things() -> dict[str, tuple[Any, list[str]]]:
    """What users see as the value of a cell, and what has to be in its picture."""
    torch.manual_seed(0)
    rules = sp.parse(RULES)
    n, m = sp.Integer("n", 0, 3), sp.Integer("m", 0, 3)
    steps = [10, 20, 30]
    history = sp.training.History(steps, [0.9, 0.5, float("nan")], [40.0, 70.0, 60.0], [-1.0] * 3, 20, 70.0, -0.5, 1.5)
    cats = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]]).repeat(9, 1)
    wrong = {"cat": [1, 0], "dog": [0, 0], "animal": [0, 1], "<b>&": [0, 1]}
    heads = {name: torch.randn(4) for name in "nm"}
    tags = sp.SequenceSPL(["B", "I", "O"], "(B I* | O)*")
    from semprola.comparison.comparing import METRICS, Comparison

    fold: dict[str, float] = dict.fromkeys(METRICS, 60.0)
    figures = Comparison([{"method": "fil", "title": "FIL", "folds": [fold]}], {})
    return {
        "formula": (rules, ["3 rules", "&lt;b&gt;&amp;", ">animal</span>"]),
        "family": (sp.constraints.permutation(3), ["permutation(3)"]),
        "circuit": (sp.compile(rules), []),
        "layer": (sp.SPL(4, rules), ["4 labels", "parameters"]),
        "constrained": (sp.ConstraintLayer(rules), ["0 parameters"]),
        "a split itself": (sp.split(rules, max_nodes=8), ["circuit", "edges"]),
        "split": (sp.SPL(4, sp.split(rules, max_nodes=8)), ["parameters"]),
        "one row": (sp.SPL(4, rules)(torch.randn(4)), ["over 4 labels", "most probable states", "marginals"]),
        "rows": (sp.ProductSPL(4, rules, components=2)(torch.randn(2, 3, 4)), ["the first of 6 rows"]),
        "variables": (sp.constrain(heads, n + m <= 3), ["n = ", "m = 3"]),
        "sequences": (tags(torch.randn(2, 5, 3)), ["over 3 tags", "B I", "marginals", "position"]),
        "tagger": (tags, ["3 tags, 2 states"]),
        "history": (history, ["loss, by step", "exact match on validation rows", "the best step, 20"]),
        "violations": (sp.violations("cat -> animal\ndog -> animal", cats), ["cat=1, animal=0"]),
        "no violations": (sp.violations("cat", torch.tensor([[1]])), ["no row breaks a rule"]),
        "review": (sp.rules.review(RULES, wrong), ["row 0", "nearest row that obeys", "nats per row"]),
        "comparison": (sp.rules.compare("cat -> animal", "cat & animal"), ["looser", "the second"]),
        "explanation": (sp.rules.explain(RULES, {"cat": 1, "animal": 0}), ["impossible"]),
        "learnt": (sp.rules.learn(cats.float(), labels=["cat", "dog", "animal"]), ["rows"]),
        "methods": (figures, ["FIL", "60.0"]),
    }


class Balanced(HTMLParser):
    """Fails if tags are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID and not tag.startswith("?"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_everything_has_a_picture_and_keeps_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making one compiles nothing, and takes a moment."""
    made = things()

    def refused(*args: Any, **options: Any) -> None:
        raise AssertionError("something is compiled for a picture")

    monkeypatch.setattr(budget.Budget, "__init__", refused)
    for name, (thing, expected) in made.items():
        began = time.process_time()
        shown, _ = formatters.DisplayFormatter().format(thing)
        assert time.process_time() - began < 1, name
        assert shown["text/plain"].split() == repr(thing).split(), name
        picture = shown.get("text/html") or shown["image/svg+xml"]
        assert [words for words in expected if words not in picture] == [], f"{name}: {picture}"
        assert "<b>&" not in picture
        reader = Balanced()
        reader.feed(picture)
        assert reader.open == [], name


def test_the_states_and_marginals_are_those_of_the_first_row() -> None:
    p = sp.constrain(torch.tensor([[2.0, -1.0, 0.5], [-3.0, 0.5, 0.0]]), "cat -> animal\ndog -> animal")
    picture = p._repr_html_()
    assert p.labels == ("cat", "animal", "dog")
    states, log_probs = p.top_k(5)
    assert f'<td style="{_number()}">{log_probs[0, 0].exp():.3f}</td>' in picture
    names = [name for name, one in zip(p.labels, states[0, 0].tolist(), strict=True) if one]
    assert f">{', '.join(names)}</td>" in picture
    for chance in p.mean[0].tolist():
        assert f">{chance:.3f}</td>" in picture


def _number() -> str:
    from semprola import _notebook

    return _notebook._NUMBER


def test_a_picture_changes_nothing() -> None:
    layer = sp.SPL(4, sp.parse(RULES), components=2)
    p, other = (layer(torch.ones(2, 4)) for _ in range(2))
    assert p._repr_html_() is not None
    torch.testing.assert_close(p.mean, other.mean)
    (gradient,) = torch.autograd.grad(p.mean.sum(), [next(layer.parameters())])
    assert bool(gradient.isfinite().all())


def test_what_is_large_or_empty_or_broken_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from semprola.distributions import showing

    layer = sp.SPL(4, "a -> b")
    assert layer(torch.zeros(0, 4))._repr_html_() is None
    p = layer(torch.zeros(1, 4))
    monkeypatch.setattr(showing, "MOST_EDGES", 1)
    assert p._repr_html_() is None

    def fails(*args: Any) -> None:
        raise RuntimeError("no picture")

    monkeypatch.setattr(showing, "html", fails)
    assert p._repr_html_() is None
    assert sp.training.History()._repr_html_() is None


@pytest.mark.parametrize("make", [lambda n: sp.And([sp.Bool(f"x{i}") >> sp.Bool(f"x{i + 1}") for i in range(n)])])
def test_long_formulas_are_cut(make: Callable[[int], Any]) -> None:
    picture = make(3000)._repr_html_()
    assert "3,000 rules" in picture
    assert "… and 2,960 more rules" in picture
    assert len(picture) < 20_000


def test_states_that_are_not_proven_to_be_the_best_are_called_found() -> None:
    rules = sp.at_least(1, [f"y{i}" for i in range(14)])
    single, several = (sp.SPL(2, rules, components=n)(torch.zeros(2))._repr_html_() for n in (1, 2))
    assert "most probable states<" in single
    assert "most probable states found<" in several
