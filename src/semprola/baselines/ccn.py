"""CCN: scores that are raised until normal rules hold (Giunchiglia & Lukasiewicz, JAIR 2021)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semprola.baselines.common import ScoringLayer, ThresholdScores, binary
from semprola.compiler.sources import formula_of
from semprola.constraints.hierarchy.family import OPTIONS, Hierarchy
from semprola.errors import LabelError, PropertyError
from semprola.logic import Formula, Kind
from semprola.logic.rules import conjuncts, literal_of
from semprola.logic.syntax import checked_names

_INFINITE = float("inf")


class CCN(ScoringLayer):
    """Coherent-by-construction network: rules ``a & !b -> c`` hold for the labels that score above 0.5.

    A linear layer scores every label. Then, stratum by stratum, the score of a rule's head is raised to the smallest
    score in the rule's body; a negated label counts as one minus its score.

    Args:
        in_features: width of the features z.
        rules: a formula, its text, a hierarchy without options, or a list of these. Each rule is a conjunction of
            literals that implies a label. The rules must be stratified: no label depends on its own negation.
        labels: the columns of y; by default the labels of the rules in order of first appearance.
        gate: widths of hidden layers (ReLU).

    Raises:
        PropertyError: if a rule has another form, or the rules are not stratified; the message names the rule.
        LabelError: if a rule mentions a label that is not among `labels`.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.baselines.CCN(8, "(cat -> animal) & (animal & !cat -> other)")
        >>> y = layer(torch.randn(5, 8)).mode
        >>> bool((y[:, 0] <= y[:, 1]).all())
        True
    """

    def __init__(
        self,
        in_features: int,
        rules: Formula | str | Iterable[Formula | str],
        *,
        labels: Iterable[str] | None = None,
        gate: Iterable[int] | int = (),
    ) -> None:
        read = normal_rules(rules)
        named = list(dict.fromkeys(name for rule in read for name in (*rule.positive, *rule.negative, rule.head)))
        names = tuple(named) if labels is None else checked_names(labels, "labels")
        unknown = [name for name in named if name not in set(names)]
        if unknown:
            raise LabelError(f"a rule mentions {unknown[0]!r}, which is not among the labels")
        groups = strata(read, names)
        super().__init__(in_features, gate, len(names))
        self.rules, self.labels = read, names
        self.strata = nn.ModuleList(_Stratum(part, names) for group in groups for part in _alike(group))

    def forward(self, z: Tensor) -> CCNScores:
        """The scores for features z [*batch, in_features]."""
        return CCNScores(self.scores(z), list(self.strata), self.labels)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """What `repr` shows besides the gate."""
        return f"{len(self.rules)} rules over {len(self.labels)} labels"


class CCNScores(ThresholdScores):
    """CCN's prediction for a batch: a score per label, but no joint distribution.

    Args:
        logits: log-odds before the rules are applied [*batch, labels].
        groups: the rules, from `CCN`.
        labels: names of the columns.
    """

    method = "CCN"

    def __init__(self, logits: Tensor, groups: Sequence[_Stratum], labels: Sequence[str] = ()) -> None:
        self.logits, self._groups, self.labels = logits, groups, tuple(labels)

    @property
    def mean(self) -> Tensor:
        """Scores after the rules are applied [*batch, labels]; they stand in for marginals."""
        return torch.sigmoid(_raised(self._groups, self.logits))

    @property
    def mode(self) -> Tensor:
        """Labels that score above 0.5 [*batch, labels]; they obey the rules."""
        with torch.no_grad():
            # round to ±1 first: at a score of exactly 0.5, a label is off and its negation holds
            values = torch.where(self.logits > 0, 1.0, -1.0).to(self.logits.dtype)
            return (_raised(self._groups, values) > 0).to(self.logits.dtype)

    def loss(self, y: Tensor) -> Tensor:
        """The constraint loss of label vectors y [*batch, labels], summed over labels [*batch].

        A label that is on gets support only from bodies whose literals are true in y; a label that is off sends blame
        only to literals of a body that are false in y. On hierarchies, this is the loss of `HMCNN`.

        Raises:
            ValueError: if y has the wrong shape, or values other than 0 and 1.
        """
        on = binary(y, self.logits.shape)
        values = _raised(self._groups, self.logits, on)
        return F.softplus(torch.where(on, -values, values)).sum(-1)


def _raised(groups: Sequence[_Stratum], logits: Tensor, truth: Tensor | None = None) -> Tensor:
    """Log-odds [*batch, labels] after the rules; for the loss, bodies are restricted by the true labels.

    Each is the log-odds of one literal, which is searched for without derivatives.
    """
    columns = logits.reshape(-1, logits.shape[-1]).T
    negated = any(group.negates for group in groups)
    literals = _literals_of(columns, _INFINITE, negated)
    tracked = torch.is_grad_enabled()
    with torch.no_grad():
        values = literals.detach().clone()
        rows = torch.arange(len(values), device=values.device)[:, None]
        # like the values, so that under vmap both are batched
        origin = torch.zeros_like(values, dtype=torch.int64) + rows if tracked else None
        known = None if truth is None else _literals_of(truth.reshape(columns.T.shape).T, True, negated)
        for group in groups:
            group.settle(values, origin, known)
    found = values[: len(columns)] if origin is None else literals.gather(0, origin[: len(columns)])
    return found.T.reshape(logits.shape)


def _literals_of(columns: Tensor, always: Any, negated: bool) -> Tensor:
    """The values of all labels, of "always" and "never", and of the labels' negations [2 * labels + 2, batch]."""
    constant = torch.full_like(columns[:1], always)
    parts = [columns, constant, ~constant if columns.dtype == torch.bool else -constant]
    if negated:
        parts.append(~columns if columns.dtype == torch.bool else -columns)
    return torch.cat(parts)


class _Stratum(nn.Module):
    """Rules that are applied together; each literal is a row of `_literals_of`."""

    heads: Tensor
    bodies: Tensor

    def __init__(self, rules: Sequence[Rule], labels: Sequence[str]) -> None:
        super().__init__()
        column = {name: number for number, name in enumerate(labels)}
        always, never, negation = len(labels), len(labels) + 1, len(labels) + 2
        bodies: dict[int, list[list[int]]] = {}
        for rule in rules:
            body = [column[name] for name in rule.positive] + [negation + column[name] for name in rule.negative]
            bodies.setdefault(column[rule.head], []).append(body or [always])
        most, width = max(map(len, bodies.values())), max(len(body) for own in bodies.values() for body in own)
        padded = [
            [*([*body, *[always] * (width - len(body))] for body in own), *[[never] * width] * (most - len(own))]
            for own in bodies.values()
        ]
        self.always = always
        self.register_buffer("heads", torch.tensor(list(bodies)), persistent=False)
        self.register_buffer("bodies", torch.tensor(padded), persistent=False)  # [heads, rules, literals]
        self.rounds = len(bodies) if _is_circular(rules) else 1
        self.negates = any(rule.negative for rule in rules)

    def settle(self, values: Tensor, origin: Tensor | None, known: Tensor | None) -> None:
        """Raise heads in place: the values of all literals, and the literals that these were before any rule."""
        for _ in range(self.rounds):
            if not self._raise(values, origin, known):
                return

    def _raise(self, values: Tensor, origin: Tensor | None, known: Tensor | None) -> bool:
        heads, bodies = self.heads, self.bodies
        body = values[bodies]  # [heads, rules, literals, batch]
        if known is not None:
            wanted, holds = known[heads][:, None, None], known[bodies]
            other = torch.where(wanted, -_INFINITE, _INFINITE).to(body.dtype)
            body = torch.where(wanted == holds, body, other)
        support, weakest = body.min(2)
        if known is not None:
            # y makes the body true but the head is off: the row breaks the rule, and no literal is to blame
            support = support.masked_fill(support == _INFINITE, -_INFINITE)
        support, strongest = support.max(1)
        before, negation = values[heads], self.always + 2
        better = (support > before) | support.isnan()
        values[heads] = support = torch.where(better, support, before)
        if len(values) > negation:
            values[heads + negation] = -support
        if origin is not None:
            place = strongest * bodies.shape[2] + weakest.gather(1, strongest[:, None])[:, 0]
            found = torch.where(better, origin.gather(0, bodies.flatten(1).gather(1, place)), origin[heads])
            origin[heads] = found
            if len(values) > negation:
                opposite = torch.where(found >= negation, found - negation, found + negation)
                origin[heads + negation] = opposite.masked_fill(found == self.always, self.always + 1)
        return self.rounds > 1 and bool(better.any())


def _is_circular(rules: Sequence[Rule]) -> bool:
    heads = {rule.head for rule in rules}
    return any(name in heads for rule in rules for name in rule.positive)


def _alike(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Rules of a stratum, with heads of a similar number of rules together: tables are as wide as the longest row."""
    if _is_circular(rules):
        return [list(rules)]
    count = Counter(rule.head for rule in rules)
    groups: dict[int, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(count[rule.head].bit_length(), []).append(rule)
    return list(groups.values())


_CCN = "CCN takes rules of the form 'a & !b -> c'"


@dataclass(frozen=True)
class Rule:
    """If all of `positive` are on and all of `negative` are off, then `head` is on.

    Attributes:
        positive, negative: the labels of the body.
        head: the label that is implied.
        text: the rule as the user wrote it.
    """

    positive: tuple[str, ...]
    negative: tuple[str, ...]
    head: str
    text: str


def normal_rules(source: Formula | str | Iterable[Formula | str], *, taker: str = _CCN) -> list[Rule]:
    """Read rules of the form ``a & !b -> c`` from a formula, its text, a hierarchy, or a list of these.

    Also accepted: a conjunction of rules, a conclusion that is a conjunction, an equivalence of conjunctions of labels,
    a label on its own (it is always on), and a clause with exactly one label that is not negated.

    Args:
        taker: the beginning of the error: which method takes rules, and of which form.
    """
    parts: list[Any] = [source] if isinstance(source, Formula | str | os.PathLike) else list(source)
    rules: list[Rule] = []
    for part in parts:
        for conjunct in conjuncts(formula_of(part, "a layer of rules")):
            rules += [] if conjunct.kind is Kind.TRUE else _read(conjunct, taker)
    return rules


def strata(rules: Sequence[Rule], labels: Sequence[str]) -> list[list[Rule]]:
    """Rules in an order such that every label that a rule negates is settled before the rule is applied.

    The rules of a group depend only on each other and on earlier groups. A group whose labels imply each other in a
    cycle has to be repeated until nothing changes.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(labels)
    for rule in rules:
        graph.add_edges_from((name, rule.head) for name in (*rule.positive, *rule.negative))
    part_of = {name: number for number, part in enumerate(nx.strongly_connected_components(graph)) for name in part}
    for rule in rules:
        if any(part_of[name] == part_of[rule.head] for name in rule.negative):
            raise PropertyError(
                f"the rules are not stratified: in {rule.text!r}, {rule.head!r} depends on its own negation"
            )
    parts = nx.condensation(graph)
    depth: dict[int, int] = {}
    for part in nx.topological_sort(parts):
        depth[part] = 1 + max((depth[before] for before in parts.predecessors(part)), default=-1)
    mapping = parts.graph["mapping"]
    groups: dict[int, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(depth[mapping[rule.head]], []).append(rule)
    return [groups[level] for level in sorted(groups)]


def _read(formula: Formula, taker: str) -> list[Rule]:
    text = str(formula)
    if isinstance(formula, Hierarchy) and not any(getattr(formula, name) for name in OPTIONS):
        names = formula.names
        return [
            Rule((names[child],), (), names[parent], f"{names[child]} -> {names[parent]}")
            for parent, children in enumerate(formula.children_of)
            for child in children
        ]
    if formula.kind is Kind.IMPLIES:
        body, heads = _literals(formula.args[0]), _literals(formula.args[1])
        if body is not None and heads is not None and heads and all(on for _, on in heads):
            return [_rule(body, head, text) for head, _ in heads]
    elif formula.kind is Kind.IFF and len(formula.args) == 2:
        sides = [_literals(side) for side in formula.args]
        if all(side and all(on for _, on in side) for side in sides):
            left, right = (side or [] for side in sides)
            return [_rule(left, head, text) for head, _ in right] + [_rule(right, head, text) for head, _ in left]
    else:
        clause = [literal_of(part) for part in (formula.args if formula.kind is Kind.OR else (formula,))]
        known = [literal for literal in clause if literal is not None]
        heads = [literal for literal in known if literal[1]]
        if len(known) == len(clause) and len(heads) == 1:
            return [_rule([(name, not on) for name, on in known if not on], heads[0][0], text)]
    raise PropertyError(f"{taker}, but {text[:200]!r} is not one: rewrite it, or use sp.SPL, which takes any formula")


def _rule(body: Sequence[tuple[str, bool]], head: str, text: str) -> Rule:
    return Rule(tuple(n for n, on in body if on), tuple(n for n, on in body if not on), head, text)


def _literals(formula: Formula) -> list[tuple[str, bool]] | None:
    """The literals of a conjunction; None if it is another formula."""
    found = [literal_of(part) for part in conjuncts(formula) if part.kind is not Kind.TRUE]
    kept = [literal for literal in found if literal is not None]
    return kept if len(kept) == len(found) else None
