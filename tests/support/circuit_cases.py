"""Small circuits, a referee that lists their models by definition, and damage for files that hold them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from semprola.circuit import FALSE, LITERAL, PRODUCT, SUM, Circuit, CircuitBuilder
from semprola.circuit.fold import pruned

Model = tuple[int, ...]
Partial = frozenset[tuple[int, int]]


def names(count: int) -> list[str]:
    return [f"v{i}" for i in range(count)]


def random_models(rng: random.Random, variables: int, share: float = 0.4) -> set[Model]:
    """Some assignments, at least one."""
    rows = list(product((0, 1), repeat=variables))
    return {row for row in rows if rng.random() < share} or {rng.choice(rows)}


def diagram(models: Iterable[Model], variables: int, *, given: int = 0, suppress: bool = False) -> Circuit:
    """The reduced decision diagram of some models; zero-suppressed if asked (given variables never are)."""
    outputs = variables - given
    builder = CircuitBuilder(names(variables)[:outputs], names(variables)[outputs:])

    def below(level: int, rows: frozenset[Model]) -> int:
        if not rows:
            return FALSE
        if level == variables:
            return builder.true()
        low, high = (below(level + 1, frozenset(r for r in rows if r[level] == bit)) for bit in (0, 1))
        if suppress and level < outputs:
            if high == FALSE:
                return low
            return builder.sum([low, builder.product([builder.literal(level, True), high])])
        return low if low == high else builder.decision(level, low, high)

    flags = [suppress and v < outputs for v in range(variables)]
    return builder.build(below(0, frozenset(models)), zero_suppressed=flags)


def random_circuit(rng: random.Random, variables: int, nodes: int, *, suppress: bool = False) -> Circuit:
    """Any graph of sums and products, with whatever properties it happens to have."""
    literals = [sign * (v + 1) for v in range(variables) for sign in (1, -1)]
    kind, literal, children = [LITERAL] * len(literals), list(literals), [[] for _ in literals]
    for _ in range(nodes):
        kind.append(rng.choice((PRODUCT, SUM)))
        literal.append(0)
        children.append(rng.sample(range(len(children)), min(len(children), rng.randint(1, 3))))
    start = [0]
    for below in children:
        start.append(start[-1] + len(below))
    flags = [suppress and rng.random() < 0.5 for _ in range(variables)]
    flat = [c for below in children for c in below]
    arrays = pruned(*(np.array(part, np.int64) for part in (kind, literal, start, flat)))
    return Circuit(names(variables), [], *arrays, zero_suppressed=flags)


class Referee:
    """The meaning of a circuit, node by node, as sets of partial assignments."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.scope: list[set[int]] = []
        self.models: list[set[Partial]] = []
        self.overlapping: set[int] = set()
        self.decomposable = self.smooth = True
        labels = set(range(circuit.num_labels))
        for node in range(circuit.num_nodes):
            parts = circuit.children_of(node).tolist()
            literal = int(circuit.literal[node])
            if literal:
                self.scope.append({abs(literal) - 1})
                self.models.append({frozenset([(abs(literal) - 1, int(literal > 0))])})
                continue
            self.scope.append(set().union(*(self.scope[c] for c in parts)))
            if circuit.kind[node] == PRODUCT:
                self.decomposable &= sum(len(self.scope[c]) for c in parts) == len(self.scope[node])
                self.models.append(self._join(parts))
            else:
                self.smooth &= all(self.scope[c] & labels == self.scope[node] & labels for c in parts)
                branches = [self._extend(c, self.scope[node]) for c in parts]
                self.models.append(set().union(*branches))
                if sum(map(len, branches)) > len(self.models[-1]):
                    self.overlapping.add(node)
        self.smooth &= labels <= self.scope[-1]

    @property
    def deterministic(self) -> bool:
        """Whether no sum below the root has branches that overlap."""
        reached, stack = {self.circuit.root}, [self.circuit.root]
        while stack:
            new = set(self.circuit.children_of(stack.pop()).tolist()) - reached
            reached |= new
            stack += new
        return not self.overlapping & reached

    def rows(self) -> set[Model]:
        full = self._extend(self.circuit.root, set(range(self.circuit.num_variables)))
        return {tuple(value for _, value in sorted(model)) for model in full}

    def _join(self, parts: Sequence[int]) -> set[Partial]:
        joined: set[Partial] = {frozenset()}
        for part in parts:
            joined = {a | b for a in joined for b in self.models[part]}
        return {model for model in joined if len({v for v, _ in model}) == len(model)}

    def _extend(self, node: int, scope: set[int]) -> set[Partial]:
        extended = self.models[node]
        for v in scope - self.scope[node]:
            values = (0,) if self.circuit.zero_suppressed[v] else (0, 1)
            extended = {model | {(v, value)} for model in extended for value in values}
        return extended


def damaged(rng: random.Random, text: str) -> str:
    """A text file with one or a few things wrong, or by luck nothing."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        lines = text.split("\n")
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        words = lines[i].split(" ")
        k = rng.randrange(len(words))
        match rng.randrange(12):
            case 0:
                del lines[i]
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                words[k] = str(rng.choice((0, 1, 2, 3, 5, 8, -1, -2, -3, 10**6 + 1, 2**31, 10**12, -(10**30))))
            case 4:
                words[k] = words[k][1:] if words[k].startswith("-") else "-" + words[k]
            case 5:
                del words[k]
            case 6:
                words.insert(k, rng.choice(("0", "1", "7", "x", "L", "D", "O", "1_0", "٣", "1e3", "nan")))
            case 7:
                words[k] = rng.choice("LIDTFAOoatf")
            case 8:
                lines = lines[:i]
            case 9:
                words[k] = "".join(chr(rng.randrange(1, 300)) for _ in range(rng.randint(1, 6)))
            case 10:
                lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
                words = lines[i].split(" ")
            case _:
                if words[k].lstrip("-").isdigit():
                    words[k] = str(int(words[k]) + rng.choice((-1, 1)))
        if len(lines) > i and lines[i].split(" ") != words and rng.random() < 0.95:
            lines[i] = " ".join(words)
        text = "\n".join(lines)
    return text
