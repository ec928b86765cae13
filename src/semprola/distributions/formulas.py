"""The probability that another formula holds, or that variables have observed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola._names import is_named
from semprola.circuit import SUM, Circuit
from semprola.circuit.whole import WholeVariable, whole_variables
from semprola.compiler import compile
from semprola.distributions.arguments import rows_named
from semprola.distributions.cases import Cases
from semprola.distributions.domain import plans_of
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.names import places_in
from semprola.distributions.numeric import log_sum_exp
from semprola.engine import CircuitPlans
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import IntractableError, LabelError, UnsatisfiableError
from semprola.logic import Formula, Leaf, parse
from semprola.logic.rules import stated

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


_FEWEST_CASES = 4
"""A formula with at most this many cases is always evaluated case by case."""
_FEW_CASES = 256
"""A formula with at most this many cases is evaluated itself, even if its negation has fewer cases."""
_MOST_CASES = 4096
"""A formula is refused if it and its negation both have more cases than this."""


def log_prob_of(p: ConstrainedDistribution, formula: Formula | str | Mapping[str, Any]) -> Tensor:
    """See :meth:`ConstrainedDistribution.log_prob_of`."""
    if is_named(formula):
        values: Any = formula
        return log_prob_of_values(p, values)
    formula = parse(formula) if isinstance(formula, str) else formula
    if not isinstance(formula, Formula):
        raise TypeError(f"expected a formula or its text, not {type(formula).__name__}")
    known = set(p.circuit.variables)
    unknown = [name for name in formula.labels if name not in known]
    if unknown:
        raise LabelError(f"the formula mentions {unknown[0]!r}, which is not a variable of the constraint")
    components = p.evaluator.components
    # evaluating a few cases is cheaper than compiling a large constraint together with the formula
    if isinstance(components, IndependentLabels) and _paths(formula, _FEWEST_CASES) is None:
        return _by_conjunction(p, components, formula)
    return _by_cases(p, formula)


def condition(p: ConstrainedDistribution, formula: Formula | str) -> Any:
    """See :meth:`ConstrainedDistribution.condition`."""
    formula = parse(formula) if isinstance(formula, str) else formula
    log_prob = log_prob_of(p, formula)
    impossible = log_prob == NEGATIVE_INFINITY
    if impossible.any():
        raise UnsatisfiableError(f"the formula has probability zero{rows_named(impossible, p.batch_shape)}")
    components = p.evaluator.components
    if isinstance(components, IndependentLabels):
        return p.over(Evaluator(components.under(_both(p, formula)), p.evaluator.log_mixing))
    found = _paths(stated(formula), _MOST_CASES)
    rows = None if found is None else _rows(found, stated(formula), p.circuit)
    if rows is None or not np.isnan(rows[:, p.circuit.num_labels :]).all():
        raise IntractableError(
            f"the formula speaks of inputs, or splits into more than {_MOST_CASES} cases: use ProductSPL or "
            "sp.constrain, which conjoin it with the constraint, or conjoin it before you build the layer"
        )
    labels = torch.from_numpy(rows[:, : p.circuit.num_labels]).to(p.evaluator.log_mixing)
    if len(labels) == 1:
        return p.condition(labels[0])
    cases = Cases(components, labels, p.evaluator.domain.under(_both(p, formula)))
    return p.over(Evaluator(cases, p.evaluator.log_mixing))


def _by_conjunction(p: ConstrainedDistribution, components: IndependentLabels, formula: Formula) -> Tensor:
    """log Z of the literals' scores under the constraint and the formula, minus that under the constraint alone."""
    try:
        both = _both(p, formula)
    except UnsatisfiableError:
        return p.log_partition.detach().new_full(p.batch_shape, NEGATIVE_INFINITY)
    narrowed = Evaluator(components.under(both), p.evaluator.log_mixing)
    log_prob = (narrowed.log_partition - p.evaluator.log_partition).reshape(p.batch_shape)
    return log_prob.clamp(max=0.0)


def _both(p: ConstrainedDistribution, formula: Formula) -> CircuitPlans:
    """The plans of the constraint and a formula; the compiler's cache returns the circuit of an earlier call."""
    circuit = p.circuit
    rules = circuit.source if circuit.source is not None else CompiledRules(circuit)
    return plans_of(compile(rules & formula, labels=circuit.labels, given=circuit.given))


def _by_cases(p: ConstrainedDistribution, formula: Formula) -> Tensor:
    """The sum over disjoint partial assignments whose union is the formula."""
    cases, negated = _cases(formula, p.circuit)
    rows = torch.from_numpy(cases).to(p.evaluator.log_mixing)
    labels, given = rows[:, : p.circuit.num_labels], rows[:, p.circuit.num_labels :]
    shape = [len(rows), *[1] * len(p.batch_shape)]
    parts = p.log_marginal(labels.reshape(*shape, p.circuit.num_labels))
    observed = p.evaluator.domain.observed
    if p.circuit.given and observed is not None:
        x = observed[p.circuit.num_labels :].T
        differs = ((given[:, None] != x) & ~given.isnan()[:, None]).any(-1)
        parts = parts.masked_fill(differs.reshape(len(rows), *p.batch_shape), NEGATIVE_INFINITY)
    blank = p.log_partition.detach().new_full(p.batch_shape, NEGATIVE_INFINITY)
    total = log_sum_exp(parts, 0).clamp(max=0.0) if len(rows) else blank
    return _log_one_minus_exp(total) if negated else total


def _cases(formula: Formula, circuit: Circuit) -> tuple[NDArray[np.float64], bool]:
    """Disjoint partial assignments [cases, variables], NaN where open, of the formula or of its negation."""
    # 1 - P(not F) loses digits if P(F) is small, so the negation is used only if the formula has many cases
    own = _paths(formula, _FEW_CASES)
    negated = _paths(~formula, _MOST_CASES) if own is None else None
    if own is None and negated is None:
        own = _paths(formula, _MOST_CASES)
    found = own if own is not None else negated
    if found is None:
        raise IntractableError(
            f"the formula splits into more than {_MOST_CASES} cases: use ProductSPL or sp.constrain, which conjoin it "
            "with the constraint, or conjoin it before you build the layer"
        )
    return _rows(found, formula, circuit), own is None


def _rows(found: NDArray[np.int8], formula: Formula, circuit: Circuit) -> NDArray[np.float64]:
    """Cases over the labels of a formula as cases over the variables of a circuit, NaN where open."""
    rows = np.full((len(found), circuit.num_variables), np.nan)
    rows[:, [circuit.variables.index(name) for name in formula.labels]] = np.where(found < 0, np.nan, found)
    return rows


def _paths(formula: Formula, most: int) -> NDArray[np.int8] | None:
    """The paths through the formula's own circuit [cases, its labels], -1 where open; None if there are too many."""
    if not formula.labels:
        return np.zeros((int(formula.evaluate({})), 0), np.int8)
    try:
        circuit = compile(formula, labels=formula.labels, given=[])
    except UnsatisfiableError:
        return np.zeros((0, len(formula.labels)), np.int8)
    uses = np.bincount(circuit.children, minlength=circuit.num_nodes)
    cases: dict[int, NDArray[np.int8]] = {}
    for node in range(circuit.num_nodes):
        below = circuit.children_of(node).tolist()
        made = _joined(circuit, node, [cases[child] for child in below], most)
        if made is None:
            return None
        cases[node] = made
        for child in below:
            uses[child] -= 1
            if not uses[child]:
                cases.pop(child, None)
    found = cases[circuit.root]
    # variables that a branch does not mention are open, unless they are zero-suppressed
    return np.where((found < 0) & circuit.zero_suppressed, np.int8(0), found)


def _joined(circuit: Circuit, node: int, parts: list[NDArray[np.int8]], most: int) -> NDArray[np.int8] | None:
    literal = int(circuit.literal[node])
    blank = np.full((1, circuit.num_variables), -1, np.int8)
    if literal:
        blank[0, abs(literal) - 1] = literal > 0
        return blank
    if circuit.kind[node] == SUM:
        return np.concatenate(parts) if sum(map(len, parts)) <= most else None
    for part in parts:
        if len(blank) * len(part) > most:
            return None
        blank = np.maximum(blank[:, None], part[None]).reshape(-1, circuit.num_variables)
    return blank


def _log_one_minus_exp(value: Tensor) -> Tensor:
    """log(1 - exp(value)) for value ≤ 0, with derivative zero, not NaN, where value is 0."""
    certain = value >= 0
    safe = value.masked_fill(certain, -1.0)
    near = torch.log(-torch.expm1(safe))
    far = torch.log1p(-torch.exp(safe))
    return torch.where(safe > -0.6931, near, far).masked_fill(certain, NEGATIVE_INFINITY)


class CompiledRules(Leaf):
    """A compiled circuit that acts as a formula, to be conjoined with others.

    Example:
        >>> import semprola as sp
        >>> circuit = sp.compile(sp.one_hot(["a", "b", "c"]))
        >>> sp.compile(CompiledRules(circuit) & sp.Bool("a")).model_count()
        1
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit, self.names = circuit, circuit.variables

    @property
    def given(self) -> tuple[str, ...]:
        """The inputs of the circuit."""
        return self.circuit.given

    def evaluate_columns(self, columns: Any, rows: int) -> NDArray[np.bool_]:
        """Which rows satisfy the circuit."""
        table = np.stack([columns[name] for name in self.circuit.variables], axis=1)
        y, x = table[:, : self.circuit.num_labels], table[:, self.circuit.num_labels :]
        return np.asarray(self.circuit.satisfied(y, given=x if self.circuit.given else None))

    def to_circuit(self) -> Circuit:
        """The circuit itself."""
        return self.circuit

    def describe(self) -> str:
        """How it is printed."""
        return f"circuit({len(self.circuit.labels)} labels)"

    def key(self) -> str:
        """The circuit's digest."""
        return self.circuit.digest


def log_prob_of_values(p: ConstrainedDistribution, values: Mapping[str, Any]) -> Tensor:
    """Log-probability of values of variables and labels, one per row or one for all [*sample, *batch]."""
    variables = whole_variables(p.circuit)
    components = p.evaluator.components
    wanted = {name: variables[name] for name in values if name in variables}
    if len(wanted) == len(values) and isinstance(components, IndependentLabels) and components.is_plain:
        places = [(wanted[name], _tensor(places_in(wanted[name], values[name]), p)) for name in values]
        if all(place.dim() == 0 or place.shape == p.batch_shape for _, place in places):
            value = components.log_value_without(_excluded(p, places))
            return (p.evaluator.log_mixing[0] + value - p.evaluator.log_partition).reshape(p.batch_shape).clamp(max=0.0)
    return p.log_marginal(values)


def _tensor(places: Any, p: ConstrainedDistribution) -> Tensor:
    return torch.as_tensor(places, device=p.evaluator.log_mixing.device)


def _excluded(p: ConstrainedDistribution, places: list[tuple[WholeVariable, Tensor]]) -> Tensor:
    """Which labels are other values than the observed ones: bool [variables, batch]."""
    batch, device = p.evaluator.batch, p.evaluator.log_mixing.device
    labels = torch.tensor([v for variable, _ in places for v in variable.places], device=device)
    widths = [len(variable.values) for variable, _ in places]
    within = torch.cat([torch.arange(width, device=device) for width in widths])
    chosen = torch.stack([place.expand(p.batch_shape).reshape(batch) for _, place in places])
    chosen = chosen.repeat_interleave(torch.tensor(widths, device=device), dim=0)
    excluded = torch.zeros((p.circuit.num_variables, batch), dtype=torch.bool, device=device)
    excluded[labels] = (chosen != within[:, None]) & (chosen >= 0)
    return excluded
