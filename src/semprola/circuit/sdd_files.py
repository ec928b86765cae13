"""Sentential decision diagrams and vtrees in the text formats of the SDD package.

A vtree file lists its nodes, children first, under arbitrary ids: ``vtree N``, ``L id variable``, ``I id left right``.
An SDD file refers to these ids: ``sdd N``, ``F id``, ``T id``, ``L id vtree literal``, ``D id vtree k (prime sub)*k``;
its last node is the root. Variables count from 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from semprola._files import write_atomically
from semprola.circuit.builder import FALSE, CircuitBuilder
from semprola.circuit.circuit import Circuit
from semprola.circuit.storage import TextFile
from semprola.circuit.vtree import Vtree
from semprola.errors import FormatError, LabelError, SemprolaError, UnsatisfiableError
from semprola.logic.syntax import checked_names

MOST_VARIABLES = 10**6
"""Files with more variables are refused."""

_FIELD = 2**61 - 1
_MOST_SCOPE_BYTES = 2**30


def read_sdd(
    sdd: str | Path, vtree: str | Path, labels: Sequence[str] | None = None, given: Sequence[str] = ()
) -> Circuit:
    """Read a sentential decision diagram and its vtree.

    The files are checked: nodes lie where the vtree says, the primes of every decision are a partition, and the
    resulting circuit is proven to be decomposable and deterministic.

    Args:
        sdd: the diagram.
        vtree: the vtree file that it was written with.
        labels: names of the variables 1, 2, … of the file. By default they are called "1", "2", …
        given: names of variables that are inputs. With `labels`, they name the last variables of the file; without
            it, they select some of "1", "2", …, and the labels are the others.

    Raises:
        FormatError: a file is malformed, or the circuit cannot be verified; the message says where.
        UnsatisfiableError: the diagram is false.
        LabelError: the names do not fit the variables.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sdd, vtree = Path(folder) / "or.sdd", Path(folder) / "or.vtree"
        ...     _ = vtree.write_text("vtree 3\\nL 0 1\\nL 2 2\\nI 1 0 2\\n")
        ...     _ = sdd.write_text("sdd 5\\nL 0 0 1\\nL 1 0 -1\\nT 2\\nL 3 2 2\\nD 4 1 2 0 2 1 3\\n")
        ...     read_sdd(sdd, vtree, labels=["tea", "coffee"]).model_count()
        3
    """
    tree, node_of = _read_vtree(vtree)
    labels, given, order = variable_names(tree.num_variables, labels, given, str(vtree))
    diagram = _Diagram(TextFile(sdd), tree, node_of, CircuitBuilder(labels, given), order)
    root = diagram.read()
    if root == FALSE:
        raise UnsatisfiableError(f"{sdd}: the diagram is false: it has no model")
    renamed = Vtree(tree.left, tree.right, [order[v] if v >= 0 else -1 for v in tree.variable.tolist()])
    return verified(diagram.builder.build(root, vtree=renamed, info={"source": "sdd"}), str(sdd))


def read_vtree(path: str | Path) -> Vtree:
    """Read a vtree; variable i of the file is number i - 1."""
    return _read_vtree(path)[0]


def write_vtree(vtree: Vtree, path: str | Path) -> None:
    """Write a vtree in the format of the SDD package, nodes numbered from left to right."""
    write_atomically(path, vtree_text(vtree).encode())


SddWriter = Callable[[Circuit, Path, Path, Vtree], None]
_writers: list[SddWriter] = []


def provide_sdd_writer(write: SddWriter) -> None:
    """Register the function that writes SDDs: this package cannot build them itself, the SDD back end can."""
    _writers[:] = [write]


def write_sdd(circuit: Circuit, sdd_path: str | Path, vtree_path: str | Path, vtree: Vtree | None = None) -> None:
    """See :meth:`Circuit.write_sdd`."""
    if circuit.num_variables == 0:
        raise ValueError("a circuit without variables has no vtree, so it cannot be written as an SDD")
    if Path(sdd_path).absolute() == Path(vtree_path).absolute():
        raise ValueError(f"the diagram and the vtree need a file each, not both {str(sdd_path)!r}")
    chosen = vtree or circuit.vtree or Vtree.right_linear(circuit.order_of_appearance())
    if chosen.num_variables != circuit.num_variables:
        raise ValueError(f"the vtree has {chosen.num_variables} variables, the circuit {circuit.num_variables}")
    if not _writers:
        raise SemprolaError("writing an SDD needs the compiler: import semprola.compiler first")
    _writers[0](circuit, Path(sdd_path), Path(vtree_path), chosen)


def vtree_text(vtree: Vtree) -> str:
    """The text that `write_vtree` writes."""
    first, last = vtree.first.tolist(), vtree.last.tolist()
    left, right, variable = vtree.left.tolist(), vtree.right.tolist(), vtree.variable.tolist()
    # in-order numbers like those of the SDD package: leaves are even, an inner node follows the leaves on its left
    number = [2 * first[n] if variable[n] >= 0 else 2 * last[left[n]] + 1 for n in range(len(vtree))]
    lines = [f"vtree {len(vtree)}"]
    for n in range(len(vtree)):
        if variable[n] >= 0:
            lines.append(f"L {number[n]} {variable[n] + 1}")
        else:
            lines.append(f"I {number[n]} {number[left[n]]} {number[right[n]]}")
    return "\n".join(lines) + "\n"


def variable_names(
    count: int, labels: Sequence[str] | None, given: Sequence[str], path: str
) -> tuple[list[str], list[str], list[int]]:
    """Labels and given names for the variables 1 … count of a file, and the index of each variable; see `read_sdd`."""
    names = [str(i + 1) for i in range(count)] if labels is None else [*labels, *given]
    if len(names) != count:
        wanted = f"{len(names)} names (labels and given) were passed"
        raise LabelError(f"{path} has {count} variables, but {wanted}")
    checked_names(names, path)
    checked_names(given, "given")
    chosen = set(given)
    for name in given:
        if labels is None and not (name.isascii() and name.isdigit() and 1 <= int(name) <= count):
            raise LabelError(
                f"given variable {name!r} is not one of the variables 1 to {count} of {path}: pass labels="
            )
    inputs = list(given)
    outputs = [name for name in names if name not in chosen] if labels is None else list(labels)
    index = {name: i for i, name in enumerate([*outputs, *inputs])}
    return outputs, inputs, [index[name] for name in names]


def verified(circuit: Circuit, path: str) -> Circuit:
    """The circuit, once products are proven to have disjoint variables and sums to have exclusive branches."""
    if circuit.num_nodes * (circuit.num_variables // 64 + 1) * 8 > _MOST_SCOPE_BYTES:
        size = f"{circuit.num_nodes} nodes over {circuit.num_variables} variables"
        raise FormatError(f"{path}: too large to verify in memory: {size}")
    if not circuit.is_decomposable:
        raise FormatError(f"{path}: not decomposable: the children of some 'and' share a variable")
    if not circuit.is_deterministic:
        raise FormatError(f"{path}: not deterministic: the children of some 'or' cannot be proven mutually exclusive")
    return circuit


def _read_vtree(path: str | Path) -> tuple[Vtree, dict[int, int]]:
    """The vtree, and the node in it for each id of the file."""
    file = TextFile(path)
    lines = iter(file)
    count = _announced(file, lines, "vtree", 2 * MOST_VARIABLES)
    left: list[int] = []
    right: list[int] = []
    variable: list[int] = []
    node_of: dict[int, int] = {}
    orphans: set[int] = set()
    leaves: set[int] = set()
    for words in lines:
        _check_shape(file, words, {"L": 3, "I": 4})
        number = _new_id(file, words[1], node_of)
        children, v = [-1, -1], 0
        if words[0] == "L":
            v = file.whole(words[2], "variable", 1, (count + 1) // 2)
            if v in leaves:
                raise file.error(f"variable {v} already has a leaf")
            leaves.add(v)
        else:
            children = [_known(file, word, node_of, "vtree node") for word in words[2:]]
            for child, word in zip(children, words[2:], strict=True):
                if child not in orphans:
                    raise file.error(f"vtree node {word} already has a parent")
                orphans.remove(child)
        node_of[number] = len(variable)
        orphans.add(len(variable))
        left.append(children[0])
        right.append(children[1])
        variable.append(v - 1)
    # at most half of `count` nodes (rounded up) are leaves, so the right number of nodes leaves a single root
    _check_count(file, "vtree", count, len(variable))
    return Vtree(left, right, variable), node_of


@dataclass
class _Node:
    """What is known about a node of the diagram."""

    built: int
    """The builder's node, or FALSE."""
    first: int = -1
    """The node lies between these two positions of the vtree's order; -1 for constants."""
    last: int = -1
    weight: int = 0
    """Its polynomial (see `_Diagram`) at a random point."""


@dataclass
class _Diagram:
    """Reads an SDD file into a builder.

    Besides building the circuit, it evaluates the multilinear polynomial of every node at one random point of a field
    of 2^61 - 1 elements: a literal v is worth r, -v is worth 1 - r, products multiply and sums add. Primes sum to the
    constant 1 exactly if each assignment satisfies one of them, so primes that are not a partition are detected,
    except with a probability of (number of variables) / 2^61.
    """

    file: TextFile
    vtree: Vtree
    vtree_node: dict[int, int]
    builder: CircuitBuilder
    index: list[int]
    nodes: dict[int, _Node] = field(default_factory=dict)

    def read(self) -> int:
        """Read the file and return the builder's number for the root."""
        chance = random.Random()  # not seeded, so nobody can craft a file for it
        self.point = [chance.randrange(_FIELD) for _ in range(self.vtree.num_variables)]
        self.first, self.last = self.vtree.first.tolist(), self.vtree.last.tolist()
        lines = iter(self.file)
        count = _announced(self.file, lines, "sdd", 2**31 - 1)
        node = None
        for words in lines:
            _check_shape(self.file, words, {"F": 2, "T": 2, "L": 4, "D": None})
            number = _new_id(self.file, words[1], self.nodes)
            node = self.nodes[number] = self._node(words)
        _check_count(self.file, "sdd", count, len(self.nodes))
        if node is None:
            raise self.file.error("the file has no nodes")
        return node.built

    def _node(self, words: list[str]) -> _Node:
        if words[0] == "T":
            return _Node(self.builder.true(), weight=1)
        if words[0] == "F":
            return _Node(FALSE)
        return self._literal(words) if words[0] == "L" else self._decision(words)

    def _literal(self, words: list[str]) -> _Node:
        home = _known(self.file, words[2], self.vtree_node, "vtree node")
        most = self.vtree.num_variables
        literal = self.file.whole(words[3], "literal", -most, most)
        variable = abs(literal) - 1
        if literal == 0 or self.vtree.variable[home] != variable:
            raise self.file.error(f"literal {literal} does not belong to vtree node {words[2]}")
        weight = self.point[variable] if literal > 0 else 1 - self.point[variable]
        built = self.builder.literal(self.index[variable], literal > 0)
        return _Node(built, self.first[home], self.last[home], weight % _FIELD)

    def _decision(self, words: list[str]) -> _Node:
        if len(words) < 4:
            raise self.file.error("a decision is 'D id vtree count prime sub …'")
        home = _known(self.file, words[2], self.vtree_node, "vtree node")
        if self.vtree.variable[home] >= 0:
            raise self.file.error(f"vtree node {words[2]} is a leaf: there is nothing to decide")
        size = self.file.whole(words[3], "number of elements", 1)
        if len(words) != 4 + 2 * size:
            raise self.file.error(f"{size} elements need {2 * size} ids, not {len(words) - 4}")
        elements: list[int] = []
        partition = weight = 0
        for i in range(4, len(words), 2):
            prime = self._below(words[i], int(self.vtree.left[home]), "prime", "left")
            sub = self._below(words[i + 1], int(self.vtree.right[home]), "sub", "right")
            elements.append(self.builder.product([prime.built, sub.built]))
            partition += prime.weight
            weight += prime.weight * sub.weight
        if partition % _FIELD != 1:
            raise self.file.error(f"the primes of decision {words[1]} overlap or leave a gap: they must be a partition")
        return _Node(self.builder.sum(elements), self.first[home], self.last[home], weight % _FIELD)

    def _below(self, word: str, home: int, what: str, side: str) -> _Node:
        number = self.file.whole(word, "id")
        node = self.nodes.get(number)
        if node is None:
            raise self.file.error(f"{what} {number} is not defined before this line")
        if node.last >= 0 and not self.first[home] <= node.first <= node.last <= self.last[home]:
            raise self.file.error(f"{what} {number} does not lie in the {side} branch of the decision's vtree node")
        return node


def _announced(file: TextFile, lines: Iterator[list[str]], keyword: str, most: int) -> int:
    """The number of nodes in the first line. Nothing is allocated for them; they are counted as they are read."""
    words = next(lines, None)
    if words is None or words[0] != keyword or len(words) != 2:
        raise file.error(f"the file must start with '{keyword} number-of-nodes'", line=file.line or 1)
    return file.whole(words[1], "number of nodes", 1, most)


def _check_count(file: TextFile, keyword: str, announced: int, found: int) -> None:
    if found != announced:
        raise file.error(f"'{keyword} {announced}' announces {announced} nodes, but the file has {found}")


def _check_shape(file: TextFile, words: list[str], lengths: Mapping[str, int | None]) -> None:
    if words[0] not in lengths:
        raise file.error(f"a node line starts with {' or '.join(lengths)}, not {words[0][:24]!r}")
    length = lengths[words[0]]
    if len(words) < 2 or length not in (None, len(words)):
        raise file.error(f"'{words[0]}' line has {len(words)} words, not {length or 'an id'}")


def _new_id(file: TextFile, word: str, known: Mapping[int, object]) -> int:
    number = file.whole(word, "id")
    if number in known:
        raise file.error(f"id {number} is used twice")
    return number


def _known(file: TextFile, word: str, known: Mapping[int, int], what: str) -> int:
    number = file.whole(word, "id")
    if number not in known:
        raise file.error(f"{what} {number} is not defined before this line")
    return known[number]
