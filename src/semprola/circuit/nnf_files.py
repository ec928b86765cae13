"""Circuits in negation normal form, as knowledge compilers write them, in the dialects of c2d and d4.

c2d: ``nnf nodes edges variables``, then one line per node, children first, the root last: ``L literal``,
``A k child*k``, ``O j k child*k`` (j is a decision variable or 0); nodes count from 0. DSHARP and others use it, too.

d4: nodes ``o id 0`` (or), ``a id 0`` (and), ``t id 0`` (true), ``f id 0`` (false), and edges ``from to literal* 0``;
the literals of an edge are conjoined with the node that it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from semprola._files import write_atomically
from semprola.circuit.builder import FALSE, CircuitBuilder
from semprola.circuit.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.sdd_files import MOST_VARIABLES, variable_names, verified
from semprola.circuit.storage import TextFile
from semprola.errors import UnsatisfiableError


def read_nnf(path: str | Path, labels: Sequence[str] | None = None, given: Sequence[str] = ()) -> Circuit:
    """Read a circuit in negation normal form, in either dialect.

    The circuit is returned only if it is proven to be decomposable and deterministic.

    Args:
        path: the file.
        labels: names of the variables 1, 2, … of the file. By default they are called "1", "2", … up to the number of
            variables in the file or, in the d4 dialect, which states none, up to the largest variable that occurs.
        given: names of variables that are inputs. With `labels`, they name the last variables of the file; without
            it, they select some of "1", "2", …, and the labels are the others.

    Raises:
        FormatError: the file is malformed, or the circuit cannot be verified; the message says where.
        UnsatisfiableError: the circuit is false.
        LabelError: the names do not fit the variables.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "or.nnf"
        ...     _ = path.write_text("nnf 5 4 2\\nL 1\\nL -1\\nL 2\\nA 2 1 2\\nO 1 2 0 3\\n")
        ...     read_nnf(path, labels=["tea", "coffee"]).enumerate().tolist()
        [[1, 0], [1, 1], [0, 1]]
    """
    file = TextFile(path)
    lines = iter(file)
    first = next(lines, None)
    if first is None:
        raise file.error("the file is empty", line=1)
    nodes: _C2d | _D4
    if first[0] == "nnf":
        nodes = _C2d(file, first, lines)
    elif first[0] in _D4_KINDS:
        nodes = _D4(file, chain([first], lines), None if labels is None else len(labels) + len(given))
    else:
        raise file.error(f"starts with {first[0][:24]!r}, not with 'nnf' (c2d) or one of 'o', 'a', 't', 'f' (d4)")
    labels, given, index = variable_names(nodes.variables, labels, given, str(path))
    builder = CircuitBuilder(labels, given)
    root = nodes.build(builder, index)
    if root == FALSE:
        raise UnsatisfiableError(f"{path}: the circuit is false: it has no model")
    return verified(builder.build(root, info={"source": "nnf"}), str(path))


def write_nnf(circuit: Circuit, path: str | Path, dialect: str = "c2d") -> None:
    """Write a circuit in negation normal form; the labels, then the given variables, become 1, 2, …

    Names are not kept. Absent variables are free in such a file, so zero-suppressed ones are spelled out first.
    """
    writers = {"c2d": _c2d_lines, "d4": _d4_lines}
    if dialect not in writers:
        raise ValueError(f"dialect must be 'c2d' or 'd4', not {dialect!r}")
    if np.any(circuit.zero_suppressed):
        from semprola.circuit.transforms import smooth

        circuit = smooth(circuit, circuit.zero_suppressed)
    text = "".join(f"{line}\n" for line in writers[dialect](circuit))
    write_atomically(path, text.encode())


_D4_KINDS = {"o": SUM, "a": PRODUCT, "t": PRODUCT, "f": SUM}
"""True is a product without factors, false a sum without terms."""


class _C2d:
    """The nodes of a c2d file: the kind of each, and its literal or children."""

    def __init__(self, file: TextFile, header: list[str], lines: Iterator[list[str]]) -> None:
        if len(header) != 4:
            raise file.error("the first line must be 'nnf nodes edges variables'")
        count = file.whole(header[1], "number of nodes", 1)
        file.whole(header[2], "number of edges")
        self.file = file
        self.variables = file.whole(header[3], "number of variables", 0, MOST_VARIABLES)
        self.nodes: list[tuple[int, list[int]]] = []
        for words in lines:
            self.nodes.append(self._node(words))
        if len(self.nodes) != count:
            raise file.error(f"the first line announces {count} nodes, but the file has {len(self.nodes)}")

    def build(self, builder: CircuitBuilder, index: list[int]) -> int:
        image: list[int] = []
        for kind, numbers in self.nodes:
            if kind == LITERAL:
                image.append(builder.literal(index[abs(numbers[0]) - 1], numbers[0] > 0))
            else:
                parts = [image[child] for child in numbers]
                image.append(builder.product(parts) if kind == PRODUCT else builder.sum(parts))
        return image[-1]

    def _node(self, words: list[str]) -> tuple[int, list[int]]:
        file = self.file
        if words[0] == "L" and len(words) == 2:
            literal = file.whole(words[1], "literal", -self.variables, self.variables)
            if literal == 0:
                raise file.error("a literal cannot be 0")
            return LITERAL, [literal]
        size_at = {"A": 1, "O": 2}.get(words[0], 0)
        if not size_at or len(words) <= size_at:
            raise file.error("a node is 'L literal', 'A count child …' or 'O variable count child …'")
        if words[0] == "O":
            file.whole(words[1], "decision variable", 0, self.variables)
        size = file.whole(words[size_at], "number of children")
        numbers = words[size_at + 1 :]
        if size != len(numbers):
            raise file.error(f"{size} children announced, but {len(numbers)} follow")
        if numbers and not self.nodes:
            raise file.error("the first node cannot have children: children come before their parents")
        kind = PRODUCT if words[0] == "A" else SUM
        return kind, [file.whole(word, "child", 0, len(self.nodes) - 1) for word in numbers]


class _D4:
    """The nodes and edges of a d4 file, and the nodes below its root, children first."""

    def __init__(self, file: TextFile, lines: Iterator[list[str]], variables: int | None) -> None:
        self.file = file
        self.kinds: dict[int, str] = {}
        self.edges: dict[int, list[tuple[int, list[int]]]] = {}
        targets, largest = self._read(lines, MOST_VARIABLES if variables is None else variables)
        self.variables = largest if variables is None else variables
        self.order = self._children_first(self._root(targets))

    def _read(self, lines: Iterator[list[str]], most: int) -> tuple[dict[int, int], int]:
        """The nodes that edges lead to, each with the line of such an edge, and the largest variable."""
        sources: dict[int, int] = {}
        targets: dict[int, int] = {}
        largest = 0
        for words in lines:
            if words[-1] != "0" or len(words) < 3:
                raise self.file.error("a line is 'o|a|t|f id 0' or 'from to literal … 0'")
            if words[0].isalpha():
                self._declare(words)
                continue
            source = self.file.whole(words[0], "id", 1)
            target = self.file.whole(words[1], "id", 1)
            literals = [self.file.whole(word, "literal", -most, most) for word in words[2:-1]]
            if 0 in literals:
                raise self.file.error("a literal cannot be 0")
            largest = max([largest, *map(abs, literals)])
            self.edges.setdefault(source, []).append((target, literals))
            sources.setdefault(source, self.file.line)
            targets.setdefault(target, self.file.line)
        for number, line in chain(sources.items(), targets.items()):
            if number not in self.kinds:
                raise self.file.error(f"node {number} is not declared anywhere in the file", line)
        for number, line in sources.items():
            if self.kinds[number] in "tf":
                raise self.file.error(f"an edge leaves node {number}, which is a constant", line)
        return targets, largest

    def build(self, builder: CircuitBuilder, index: list[int]) -> int:
        image: dict[int, int] = {}
        for number in self.order:
            branches = [
                [*(builder.literal(index[abs(x) - 1], x > 0) for x in literals), image[target]]
                for target, literals in self.edges.get(number, [])
            ]
            if _D4_KINDS[self.kinds[number]] == PRODUCT:
                image[number] = builder.product(chain.from_iterable(branches))
            else:
                image[number] = builder.sum(builder.product(branch) for branch in branches)
        return image[self.order[-1]]

    def _declare(self, words: list[str]) -> None:
        if words[0] not in _D4_KINDS or len(words) != 3:
            raise self.file.error(f"a node is 'o|a|t|f id 0', not {' '.join(words)[:40]!r}")
        number = self.file.whole(words[1], "id", 1)
        if number in self.kinds:
            raise self.file.error(f"node {number} is declared twice")
        self.kinds[number] = words[0]

    def _root(self, targets: dict[int, int]) -> int:
        """The only node that no edge leads to; d4 calls it 1. Constants count only if there are no other nodes."""
        inner = [number for number, kind in self.kinds.items() if kind in "oa"]
        free = [number for number in inner or self.kinds if number not in targets]
        if 1 in free:
            return 1
        if len(free) != 1:
            raise self.file.error(f"no root: exactly one node must have no incoming edge, not {len(free)}")
        return free[0]

    def _children_first(self, root: int) -> list[int]:
        order: list[int] = []
        done: set[int] = set()
        open_nodes: set[int] = {root}
        stack = [(root, iter(self.edges.get(root, [])))]
        while stack:
            number, rest = stack[-1]
            for target, _ in rest:
                if target in open_nodes:
                    raise self.file.error(f"node {target} lies below itself")
                if target not in done:
                    open_nodes.add(target)
                    stack.append((target, iter(self.edges.get(target, []))))
                    break
            else:
                stack.pop()
                open_nodes.remove(number)
                done.add(number)
                order.append(number)
        return order


def _c2d_lines(circuit: Circuit) -> Iterator[str]:
    yield f"nnf {circuit.num_nodes} {circuit.num_edges} {circuit.num_variables}"
    literals, kinds = circuit.literal.tolist(), circuit.kind.tolist()
    for node, (kind, literal) in enumerate(zip(kinds, literals, strict=True)):
        children = circuit.children_of(node).tolist()
        listed = " ".join(map(str, [len(children), *children]))
        if kind == LITERAL:
            yield f"L {literal}"
        elif kind == PRODUCT:
            yield f"A {listed}"
        else:
            yield f"O {_decided(circuit, children)} {listed}"


def _decided(circuit: Circuit, children: list[int]) -> int:
    """The variable on which two branches differ; 0 if there is none, or if there are not two branches."""
    if len(children) != 2:
        return 0
    one, other = (_split(circuit, child)[0] for child in children)
    return next((abs(literal) for literal in one if -literal in other), 0)


def _d4_lines(circuit: Circuit) -> Iterator[str]:
    """The root is node 1, and edges lead to higher numbers; an edge carries the literals of the branch it leads to."""
    count = circuit.num_nodes
    true = count + 1
    needed = {circuit.root}
    edges: list[str] = []
    for node in range(circuit.root, -1, -1):
        if node not in needed:
            continue
        below = _d4_edges(circuit, node)
        constant = circuit.kind[node] == PRODUCT and not below
        yield f"{'t' if constant else 'a' if circuit.kind[node] == PRODUCT else 'o'} {count - node} 0"
        for literals, target in below:
            if target is not None:
                needed.add(target)
            end = true if target is None else count - target
            edges.append(" ".join(map(str, [count - node, end, *literals, 0])))
    yield f"t {true} 0"
    yield from edges


def _d4_edges(circuit: Circuit, node: int) -> list[tuple[list[int], int | None]]:
    """The literals of each edge of a node and where it leads, None for true."""
    if circuit.kind[node] != SUM:
        literals, rest = _split(circuit, node)
        if not rest:
            return [(literals, None)] if literals else []
        return [(literals, rest[0]), *(([], child) for child in rest[1:])]
    edges: list[tuple[list[int], int | None]] = []
    for child in circuit.children_of(node).tolist():
        literals, rest = _split(circuit, child)
        if len(rest) > 1:
            edges.append(([], child))
        else:
            edges.append((literals, rest[0] if rest else None))
    return edges


def _split(circuit: Circuit, node: int) -> tuple[list[int], list[int]]:
    """A node as a conjunction: its literals, and its other factors."""
    if circuit.kind[node] == LITERAL:
        return [int(circuit.literal[node])], []
    if circuit.kind[node] == SUM:
        return [], [node]
    children = circuit.children_of(node).tolist()
    literals = [int(circuit.literal[child]) for child in children if circuit.kind[child] == LITERAL]
    return literals, [child for child in children if circuit.kind[child] != LITERAL]
