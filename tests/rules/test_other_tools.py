"""Rules from other tools, compared with those tools."""

from __future__ import annotations

import random

import pytest

import semprola as sp
from semprola.errors import FormatError


def test_python_sat() -> None:
    formula = pytest.importorskip("pysat.formula")
    solvers = pytest.importorskip("pysat.solvers")
    chance = random.Random(0)
    for _ in range(20):
        n = chance.randint(2, 7)
        clauses = [
            [chance.choice([-1, 1]) * v for v in chance.sample(range(1, n + 1), chance.randint(1, 2))]
            for _ in range(chance.randint(1, 6))
        ]
        cnf = formula.CNF(from_clauses=clauses)
        with solvers.Minisat22(bootstrap_with=clauses) as solver:
            models = {tuple(v > 0 for v in model) for model in solver.enum_models()}
        rules = sp.rules.from_pysat(cnf)
        assert sp.rules.model_count(rules) == len(models)
        assert all(rules.evaluate([list(model)])[0] for model in models)
        assert formula.CNF(from_string=sp.logic.to_dimacs(rules)).clauses == cnf.clauses
    soft = formula.WCNF()
    soft.append([1, 2])
    assert sp.rules.from_pysat(soft).clauses == [[1, 2]]
    soft.append([-1], weight=1)
    with pytest.raises(FormatError, match="1 soft clauses, which are not rules"):
        sp.rules.from_pysat(soft)
    plus = formula.CNFPlus()
    plus.append([[1, 2, 3], 1], is_atmost=True)
    with pytest.raises(FormatError, match="native cardinality"):
        sp.rules.from_pysat(plus)
    with pytest.raises(TypeError, match="takes a CNF or WCNF"):
        sp.rules.from_pysat([[1]])
