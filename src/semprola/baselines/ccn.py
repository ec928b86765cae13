"""CCN: scores that are raised until normal rules hold (Giunchiglia & Lukasiewicz, JAIR 2021)."""

from __future__ import annotations

import os
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
        self.strata = nn.ModuleList(_Stratum(group, names) for group in groups)

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
        values = self.logits
        for group in self._groups:
            values = group.raised(values)
        return torch.sigmoid(values)

    @property
    def mode(self) -> Tensor:
        """Labels that score above 0.5 [*batch, labels]; they obey the rules."""
        with torch.no_grad():
            # round to ±1 first: at a score of exactly 0.5, a label is off and its negation holds
            values = torch.where(self.logits > 0, 1.0, -1.0).to(self.logits.dtype)
            for group in self._groups:
                values = group.raised(values)
            return (values > 0).to(self.logits.dtype)

    def loss(self, y: Tensor) -> Tensor:
        """The constraint loss of label vectors y [*batch, labels], summed over labels [*batch].

        A label that is on gets support only from bodies whose literals are true in y; a label that is off sends blame
        only to literals of a body that are false in y. On hierarchies, this is the loss of `HMCNN`.

        Raises:
            ValueError: if y has the wrong shape, or values other than 0 and 1.
        """
        on = binary(y, self.logits.shape)
        values = self.logits
        for group in self._groups:
            values = group.raised(values, on)
        return F.softplus(torch.where(on, -values, values)).sum(-1)


class _Stratum(nn.Module):
    """Rules that are applied together."""

    members: Tensor
    signs: Tensor
    heads: Tensor

    def __init__(self, rules: Sequence[Rule], labels: Sequence[str]) -> None:
        super().__init__()
        column = {name: number for number, name in enumerate(labels)}
        width = max(1, *(len(rule.positive) + len(rule.negative) for rule in rules))
        # shorter rows are padded with an extra last column, which is always true
        members = torch.full((len(rules), width), len(labels))
        signs = torch.ones(len(rules), width)
        for row, rule in enumerate(rules):
            for place, name in enumerate((*rule.positive, *rule.negative)):
                members[row, place] = column[name]
                signs[row, place] = 1.0 if place < len(rule.positive) else -1.0
        self.register_buffer("members", members, persistent=False)
        self.register_buffer("signs", signs, persistent=False)
        self.register_buffer("heads", torch.tensor([column[rule.head] for rule in rules]), persistent=False)
        changing = {rule.head for rule in rules}
        circular = any(name in changing for rule in rules for name in rule.positive)
        self.rounds = len(changing) if circular else 1

    def raised(self, values: Tensor, truth: Tensor | None = None) -> Tensor:
        """Log-odds [*batch, labels] after the rules; for the loss, bodies are restricted by the true labels."""
        for _ in range(self.rounds):
            after = self._once(values, truth)
            if self.rounds > 1 and bool((after == values).all()):
                return after
            values = after
        return values

    def _once(self, values: Tensor, truth: Tensor | None) -> Tensor:
        always = values.new_full((*values.shape[:-1], 1), _INFINITE)
        body = torch.cat([values, always], -1)[..., self.members] * self.signs.to(values.dtype)
        if truth is not None:
            known = torch.cat([truth, torch.ones_like(truth[..., :1])], -1)[..., self.members] == (self.signs > 0)
            wanted = truth[..., self.heads].unsqueeze(-1)
            body = body.masked_fill(wanted & ~known, -_INFINITE).masked_fill(~wanted & known, _INFINITE)
        support = body.min(-1).values
        if truth is not None:
            # y makes the body true but the head is off: the row breaks the rule, and no literal is to blame
            support = support.masked_fill(support == _INFINITE, -_INFINITE)
        where = self.heads.expand(support.shape)
        return values.scatter_reduce(-1, where, support, "amax", include_self=True)


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
