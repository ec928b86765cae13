"""What is added by a recipe of CONTRIBUTING.md is tested without touching a test; see `recipes.py`."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable

import oracle
import pytest
import torch
import zoo
from conftest import ROOT
from torch import Tensor
from worlds import Setting, World

from semprola import constraints
from semprola.cli import compiling
from semprola.compiler import portfolio
from semprola.distributions.evaluator import Evaluator

FILES = (
    "tests/test_zoo.py",
    "tests/constraints/test_family.py",
    "tests/compiler/test_portfolio.py",
    "tests/engine/test_backends.py",
    "tests/engine/test_marginals.py",
    "tests/distributions/test_against_oracle.py",
)
SOME = {
    "recipe_family": "recipe_family and (spl-m1-k1 or product-1 or not test_every_query)",
    "recipe_compiler": "recipe_compiler and not Budgets",
    "recipe_engine": "recipe_engine and (maximize or test_nothing_is_observed)",
    "recipe_q": "recipe_q and (majority or given_switch or random_nested_1 or family_hierarchy)",
}
LEAST = {"recipe_family": 10, "recipe_compiler": 6, "recipe_engine": 5, "recipe_q": 4}


@pytest.mark.extensive
def test_listed_once_and_tested_everywhere() -> None:
    """A family, a compiler, an engine and a q: what is right passes, what is wrong is found."""
    chosen = " or ".join(f"({some})" for some in SOME.values())
    path = os.pathsep.join(
        [str(ROOT / "tests" / "support"), str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    )
    options = ["-p", "recipes", "-p", "no:cacheprovider", "-v", "--tb=no", "-m", "", "-k", chosen]
    command = [sys.executable, "-m", "pytest", *options]
    run = subprocess.run(
        [*command, *FILES], capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
    )
    results = re.findall(r"^tests/\S*?::(.*?) (PASSED|FAILED|ERROR)", run.stdout, re.MULTILINE)
    for name, least in LEAST.items():
        right = [result for test, result in results if name in test and "wrong" not in test]
        wrong = [result for test, result in results if f"{name}_wrong" in test]
        assert len(right) >= least, (name, run.stdout[-3000:], run.stderr[-3000:])
        assert set(right) == {"PASSED"}, (name, run.stdout[-3000:])
        assert "FAILED" in wrong, name


def test_every_family_is_in_the_zoo() -> None:
    exported = {getattr(constraints, name) for name in constraints.__all__}
    families = {cls for cls in exported if isinstance(cls, type) and issubclass(cls, constraints.Family)}
    listed = {type(case.formula) for case in zoo.FAMILIES}
    assert families - {constraints.Family} <= listed


def test_the_command_line_names_every_compiler() -> None:
    text = compiling.Backend.__metadata__[0].help
    assert [name for name in portfolio.BACKENDS if name not in text] == []


def log_expected_power(p: Evaluator, base: float) -> Tensor:
    """log E[base ** (number of labels that are true)] [batch]: a new query."""
    ones = torch.full((p.domain.circuit.num_labels, 1, p.batch), base, dtype=p.domain.dtype).log()
    return Evaluator(p.components.tilted(torch.zeros_like(ones), ones), p.log_mixing).log_partition - p.log_partition


@pytest.mark.parametrize("layer", ["spl-m1-k1", "spl-m2-k2", "product-1", "product-2", "hmm-2", "vtree-2"])
@pytest.mark.parametrize("case", ["cat_dog_animal", "random_cnf_1", "given_two", "family_hierarchy"])
@pytest.mark.parametrize("query", [log_expected_power])
def test_a_query_is_a_function_of_an_evaluator(
    case: str, layer: str, query: Callable[[Evaluator, float], Tensor]
) -> None:
    w = World(Setting(zoo.case(case), layer))
    ones = oracle.all_states(w.labels).sum(1)
    expected = torch.logsumexp(w.table.log_probs + ones * math.log(3.0), -1)
    w.close(query(w.p.evaluator, 3.0).reshape(w.batch), expected)
