"""What is checked of a compiled constraint, before there is a layer."""

from __future__ import annotations

import pickle
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import torch
from torch import Tensor

import semprola as sp
from semprola.logic import Cnf, Leaf

from .cases import Compiled


def _states(c: Compiled) -> Tensor:
    return oracle.all_states(len(c.columns) + len(c.given))


def _split(c: Compiled, rows: Tensor) -> tuple[Tensor, Tensor | None]:
    own = rows[..., : len(c.columns)]
    return own, rows[..., len(c.columns) :] if c.given else None


def _models(circuit: Any, names: Any) -> set[tuple[int, ...]]:
    """All models of a circuit over these variables, listed by the circuit."""
    place = [circuit.variables.index(name) for name in names]
    return {tuple(int(row[i]) for i in place) for row in circuit.enumerate()}


def _expected(c: Compiled) -> set[tuple[int, ...]]:
    return {tuple(map(int, row)) for row in _states(c)[c.meant.table].tolist()}


def _evaluate(c: Compiled) -> None:
    found = torch.as_tensor(c.formula.evaluate(_states(c), labels=[*c.columns, *c.given]))
    assert torch.equal(found, c.meant.table)
    own = c.formula.labels
    if set(own) == {*c.columns, *c.given}:
        rows = _states(c)
        ordered = rows[:, [[*c.columns, *c.given].index(name) for name in own]]
        assert torch.equal(torch.as_tensor(c.formula.evaluate(ordered)), c.meant.table)


def _count(c: Compiled) -> None:
    names, total = set(c.formula.labels), int(c.meant.table.sum())
    free = len({*c.columns, *c.given} - names)
    assert c.circuit.model_count() == total
    assert sp.rules.model_count(c.formula) * 2**free == total
    assert c.circuit.weighted_count({}) == total


def _weighted_count(c: Compiled) -> None:
    rng = random.Random(c.source.seed)
    pairs = {name: (rng.randint(0, 3), rng.randint(0, 3)) for name in (*c.columns, *c.given)}
    weights = torch.tensor(list(pairs.values()), dtype=torch.float64)
    states = _states(c)
    each = torch.where(states == 1, weights[:, 1], weights[:, 0]).prod(-1)
    assert c.circuit.weighted_count(pairs) == int(each[c.meant.table].sum())


def _models_and_columns(c: Compiled) -> None:
    assert c.circuit.labels == tuple(c.columns)
    assert c.circuit.given == tuple(c.given)
    assert _models(c.circuit, [*c.columns, *c.given]) == _expected(c)
    assert c.circuit.is_decomposable
    assert c.circuit.is_deterministic


def _satisfied(c: Compiled) -> None:
    own, x = _split(c, _states(c))
    assert torch.equal(c.circuit.satisfied(own, given=x), c.meant.table)


def _smooth_and_structured(c: Compiled) -> None:
    smooth = c.circuit.smooth()
    assert smooth.is_smooth
    assert smooth.model_count() == c.circuit.model_count()
    assert smooth.is_deterministic
    c.circuit.is_structured  # noqa: B018  # it only has to answer


def _condition(c: Compiled) -> None:
    rng = random.Random(c.source.seed)
    names = [*c.columns, *c.given]
    values = {name: rng.randint(0, 1) for name in names if rng.random() < 0.4}
    fits = torch.stack([_states(c)[:, names.index(name)] == v for name, v in values.items()] or [c.meant.table]).all(0)
    left = c.meant.table & fits
    try:
        some = c.circuit.condition(values)
    except sp.UnsatisfiableError:
        assert not left.any()
        return
    assert some.model_count() == int(left.sum())
    assert some.labels == tuple(c.columns)


def _as_rules(c: Compiled) -> None:
    names = [*c.columns, *c.given]
    for node in c.formula.nodes():
        rules = getattr(node, "as_rules", tuple)()
        if rules:
            states = oracle.all_states(len(node.labels))
            whole = sp.And(rules).evaluate(states, labels=list(node.labels))
            assert set(node.labels) <= set(names)
            assert np.array_equal(np.asarray(whole), np.asarray(node.evaluate(states, labels=list(node.labels))))


def _violations(c: Compiled) -> None:
    """Rows are found exactly if they have no completion; over formulas and circuits."""
    rng = np.random.default_rng(c.source.seed)
    count = len(c.columns)
    rows = torch.from_numpy(rng.integers(0, 2, (6, count + len(c.given)))).double()
    rows[:, :count][torch.from_numpy(rng.random((6, count)) < 0.3)] = torch.nan
    fits = ((rows[:, None] == _states(c)) | rows[:, None].isnan()).all(-1)
    expected = set(torch.nonzero(~(fits & c.meant.table).any(-1)).flatten().tolist())
    own, x = _split(c, rows)
    named = {name: x[:, i].tolist() for i, name in enumerate(c.given)} if x is not None else None
    assert {v.row for v in sp.violations(c.circuit, own, given=x)} == expected
    assert {v.row for v in sp.violations(c.formula, own, list(c.columns), given=named)} == expected


def _more_rules(c: Compiled) -> None:
    """A rule that is implied changes nothing; the rule and its opposite leave nothing."""
    extra = sp.Bool(c.columns[0]) >> sp.Bool(c.columns[-1])
    names = {"labels": list(c.columns), "given": list(c.given)}
    same = sp.compile(c.formula & (c.formula | extra), **names)
    assert _models(same, [*c.columns, *c.given]) == _expected(c)
    with_it = sp.rules.model_count(c.formula & extra, [*c.columns, *c.given])
    assert with_it + sp.rules.model_count(c.formula & ~extra, [*c.columns, *c.given]) == len(_expected(c))
    assert sp.rules.model_count(c.formula & ~c.formula) == 0


def _same_text(c: Compiled) -> None:
    """The text of a formula is the formula."""
    if any(isinstance(node, Leaf) for node in c.formula.nodes()) or "sp.Integer" in c.source.constraint:
        return
    if "sp.Categorical" in c.source.constraint or "sp.from_dimacs" in c.source.constraint:
        return
    again = sp.parse(str(c.formula))
    assert set(again.labels) <= {*c.columns, *c.given}
    found = again.evaluate(_states(c), labels=[*c.columns, *c.given])
    assert torch.equal(torch.as_tensor(found).expand(len(c.meant.table)), c.meant.table)
    assert str(again) == str(c.formula)


def _other_names(c: Compiled) -> None:
    """Names do not matter, nor does the order of the columns."""
    formula = c.formula
    names = [*c.columns, *c.given]
    rng = random.Random(c.source.seed)
    order = rng.sample(c.columns, len(c.columns))
    other = sp.compile(formula, labels=order, given=list(c.given))
    assert _models(other, names) == _expected(c)
    renamed = sp.Circuit(
        [f"new {name}" for name in c.circuit.labels],
        [f"new {name}" for name in c.circuit.given],
        *(getattr(c.circuit, part) for part in ("kind", "literal", "child_start", "children")),
        zero_suppressed=c.circuit.zero_suppressed,
    )
    again = sp.compile(renamed, labels=[f"new {name}" for name in order])
    assert _models(again, [f"new {name}" for name in names]) == _expected(c)


def _files(c: Compiled) -> None:
    """Saved, pickled, and written for other tools: it stays the same."""
    expected = _expected(c)
    names = [*c.columns, *c.given]
    assert pickle.loads(pickle.dumps(c.circuit)) == c.circuit
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        c.circuit.save(at / "it.sp")
        assert sp.Circuit.load(at / "it.sp") == c.circuit
        for dialect in ("c2d", "d4"):
            c.circuit.write_nnf(at / "it.nnf", dialect)
            assert _models(sp.read_nnf(at / "it.nnf", c.circuit.variables), names) == expected
        c.circuit.write_sdd(at / "it.sdd", at / "it.vtree")
        again = sp.read_sdd(at / "it.sdd", at / "it.vtree", c.circuit.labels + c.circuit.given)
        assert _models(again, names) == expected


def _pickled_formula(c: Compiled) -> None:
    again = pickle.loads(pickle.dumps(c.formula))
    assert again == c.formula
    assert again.labels == c.formula.labels


def _dimacs(c: Compiled) -> None:
    """Clauses, written and read again."""
    if not isinstance(c.formula, Cnf):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.cnf"
        sp.logic.write_dimacs(c.formula, path)
        assert sp.from_dimacs(path) == c.formula


CHECKS = (
    _evaluate,
    _count,
    _weighted_count,
    _models_and_columns,
    _satisfied,
    _smooth_and_structured,
    _condition,
    _as_rules,
    _violations,
    _more_rules,
    _same_text,
    _other_names,
    _files,
    _pickled_formula,
    _dimacs,
)
