"""The one intermediate representation: a constraint as an immutable and-or graph over flat arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semprola.circuit import properties, queries
from semprola.circuit.vtree import Vtree
from semprola.errors import FormatError
from semprola.logic.syntax import checked_names

if TYPE_CHECKING:
    from semprola.circuit.drawing import Picture

LITERAL, PRODUCT, SUM = 0, 1, 2


class Circuit:
    """A logical constraint as a graph of sums (or), products (and) and literals.

    Nodes are numbered children first and the root last, so every pass is a loop over the arrays:

    - ``kind[n]`` is ``LITERAL``, ``PRODUCT`` or ``SUM``;
    - ``literal[n]`` is ``+(v + 1)`` or ``-(v + 1)`` for a literal of variable ``v``, 0 elsewhere;
    - ``children[child_start[n] : child_start[n + 1]]`` are the children of ``n``.

    A product with no children is true; there is no false node, since an unsatisfiable constraint is refused when it
    is compiled. Every node lies below the root. The variables are the labels, then the given ones. A variable that
    a branch of a sum does not mention is free there or, if ``zero_suppressed[v]``, false there, as in a zero-
    suppressed decision diagram.

    Users get circuits from :func:`semprola.compile`; the constructor checks the arrays.

    Args:
        labels: names of the output variables, in the column order of y.
        given: names of the input variables x.
        kind, literal, child_start, children: the graph.
        zero_suppressed: for each variable, whether absent means false. Given variables are never zero-suppressed.
        vtree: the vtree that the products respect, if any; its leaves are variable indices.
        info: how the circuit was made (back end, reason, seconds, …); read-only, and ignored by comparisons.
    """

    source: Any = None
    """The formula from which it was compiled, if this process knows it; neither saved nor compared."""

    def __init__(
        self,
        labels: Sequence[str],
        given: Sequence[str],
        kind: npt.ArrayLike,
        literal: npt.ArrayLike,
        child_start: npt.ArrayLike,
        children: npt.ArrayLike,
        *,
        zero_suppressed: npt.ArrayLike | None = None,
        vtree: Vtree | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.labels: tuple[str, ...] = tuple(labels)
        self.given: tuple[str, ...] = tuple(given)
        self.kind = _frozen(kind, np.int8)
        self.literal = _frozen(literal, np.int32)
        self.child_start = _frozen(child_start, np.int64)
        self.children = _frozen(children, np.int32)
        absent = np.zeros(self.num_variables, bool) if zero_suppressed is None else zero_suppressed
        self.zero_suppressed = _frozen(absent, np.bool_)
        self.vtree = vtree
        self.info: Mapping[str, Any] = MappingProxyType(dict(info or {}))
        self._check()
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a circuit cannot be changed: {name!r} is fixed when it is made")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a circuit cannot be changed: {name!r} is fixed when it is made")

    def with_info(self, info: Mapping[str, Any]) -> Circuit:
        """The same circuit with a different `info`; nothing is copied."""
        return self._changed("info", MappingProxyType(dict(info)))

    def with_source(self, source: Any) -> Circuit:
        """The same circuit with a note of the formula from which it was compiled; nothing is copied."""
        return self._changed("source", source)

    def _changed(self, name: str, value: Any) -> Circuit:
        made = Circuit.__new__(Circuit)  # the arrays were checked when this circuit was made
        made.__dict__.update(self.__dict__, **{name: value})
        return made

    # contents -------------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all variables: the labels, then the given ones."""
        return self.labels + self.given

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    @property
    def num_variables(self) -> int:
        return len(self.labels) + len(self.given)

    @property
    def num_nodes(self) -> int:
        return len(self.kind)

    @property
    def num_edges(self) -> int:
        return len(self.children)

    @property
    def root(self) -> int:
        return len(self.kind) - 1

    def children_of(self, node: int) -> npt.NDArray[np.int32]:
        """The children of one node."""
        return self.children[self.child_start[node] : self.child_start[node + 1]]

    def order_of_appearance(self) -> list[int]:
        """The variables in the order in which literals first mention them, then the others."""
        mentioned = (np.abs(self.literal[self.literal != 0]) - 1).tolist()
        return list(dict.fromkeys([*mentioned, *range(self.num_variables)]))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that defines the circuit."""
        sha = hashlib.sha256(repr((self.labels, self.given)).encode())
        for array in (self.kind, self.literal, self.child_start, self.children, self.zero_suppressed):
            sha.update(array.tobytes())
        if self.vtree is not None:
            for array in (self.vtree.left, self.vtree.right, self.vtree.variable):
                sha.update(array.tobytes())
        return sha.hexdigest()

    def __repr__(self) -> str:
        given = f", {len(self.given)} given" if self.given else ""
        return f"Circuit({len(self.labels)} labels{given}, {self.num_nodes} nodes, {self.num_edges} edges)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Circuit) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __copy__(self) -> Circuit:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Circuit:
        return self

    def __getstate__(self) -> dict[str, Any]:
        names = ("labels", "given", "kind", "literal", "child_start", "children", "zero_suppressed", "vtree", "info")
        return {name: getattr(self, name) for name in names} | {"info": dict(self.info)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Circuit.__init__(self, **state)

    # properties -----------------------------------------------------------------------------------------------------

    @cached_property
    def is_smooth(self) -> bool:
        """Whether all children of each sum mention the same labels, and the root mentions all labels."""
        return properties.is_smooth(self)

    @cached_property
    def is_decomposable(self) -> bool:
        """Whether the children of every product share no variable."""
        return self._swept[0]

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether the children of every sum are proven to be mutually exclusive."""
        return properties.is_deterministic(self, self._swept[1])

    @cached_property
    def is_structured(self) -> bool:
        """Whether every product splits its variables as the circuit's vtree does."""
        return properties.is_structured(self)

    @cached_property
    def _swept(self) -> tuple[bool, bool]:
        return properties.swept(self)

    # queries --------------------------------------------------------------------------------------------------------

    def model_count(self, given: Mapping[str, Any] | None = None) -> int:
        """The exact number of models, as a Python int of any size.

        Args:
            given: values of the given variables; the count is 0 if they leave no model. By default, assignments to
                both labels and given variables are counted.

        Example:
            >>> import semprola as sp
            >>> sp.compile(sp.parse("(cat -> animal) & (dog -> animal)")).model_count()
            5
        """
        return queries.model_count(self, given)

    def weighted_count(self, weights: Mapping[str, tuple[Any, Any]], exact: bool = True) -> Any:
        """The sum over all models of the product of their literals' weights.

        Args:
            weights: the weights of the negative and the positive literal of each variable; 1 and 1 by default.
            exact: whether to compute with fractions. Otherwise floats are used, scaled so that they neither overflow
                nor vanish.

        Returns:
            A Fraction if `exact`; otherwise a float, or a Decimal if the value is too large or too small for a float.

        Raises:
            LabelError: a name is not a variable of the circuit.

        Example:
            >>> import semprola as sp
            >>> sp.compile("rain -> wet").weighted_count({"rain": (0.5, 0.5), "wet": (0.75, 0.25)})
            Fraction(5, 8)
        """
        from semprola.circuit import weighted

        return weighted.weighted_count(self, weights, exact)

    def satisfied(self, y: Any, given: Any = None) -> Any:
        """Whether each row satisfies the constraint, evaluated on the circuit.

        Args:
            y: rows of 0/1, array or tensor of shape [*batch, labels].
            given: rows of 0/1 of shape [*batch, given], if the circuit has given variables.

        Returns:
            bools of shape [*batch], as an array or tensor like y.
        """
        return queries.satisfied(self, y, given)

    def enumerate(self, limit: int | None = None, given: Mapping[str, Any] | None = None) -> npt.NDArray[np.uint8]:
        """Models as rows of 0/1, shape [models, labels]; without `given`, columns for the given variables follow.

        Args:
            limit: stop after this many models; by default all are listed, or an error is raised if they would not
                fit in memory.
            given: values of the given variables.
        """
        return queries.enumerate_models(self, limit, given)

    def condition(self, values: Mapping[str, Any]) -> Circuit:
        """The circuit with some variables fixed: fixed labels remain columns, fixed given variables disappear.

        Raises:
            LabelError: a name is not a variable of the circuit.
            UnsatisfiableError: no model has these values.
        """
        from semprola.circuit import transforms

        return transforms.condition(self, values)

    def smooth(self) -> Circuit:
        """An equivalent circuit in which every branch mentions every label."""
        from semprola.circuit import transforms

        return transforms.smooth(self)

    # files ----------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the circuit to a file that :meth:`load` reads: a safe format, written atomically."""
        from semprola.circuit import storage

        storage.save(self, path)

    @staticmethod
    def load(path: str | Path) -> Circuit:
        """Read a circuit written by :meth:`save`.

        Raises:
            FormatError: the file is not a circuit, is damaged, or has a newer version.
        """
        from semprola.circuit import storage

        return storage.load(path)

    def write_nnf(self, path: str | Path, dialect: str = "c2d") -> None:
        """Write the circuit in negation normal form, in the dialect "c2d" or "d4"; names are not kept."""
        from semprola.circuit import nnf_files

        nnf_files.write_nnf(self, path, dialect)

    def draw(self, path: str | Path | None = None) -> Picture | None:
        """Draw the circuit to an .svg, .png or .dot file, or return the picture, which notebooks show.

        Pictures of a large circuit show a summary.
        """
        from semprola.circuit import drawing

        if path is None:
            return drawing.picture(self)
        drawing.draw(self, path)
        return None

    def _repr_svg_(self) -> str:
        from semprola.circuit import drawing

        return drawing.picture(self).svg

    def write_sdd(self, sdd_path: str | Path, vtree_path: str | Path, vtree: Vtree | None = None) -> None:
        """Write the circuit as a sentential decision diagram and its vtree, for PySDD and :func:`read_sdd`.

        Variable i of the files, counted from 1, is ``variables[i - 1]``; the files contain no names. Both are written
        atomically.

        Args:
            sdd_path: file for the diagram.
            vtree_path: file for the vtree.
            vtree: the vtree to use; by default the circuit's own, or else the order in which its variables appear.
        """
        from semprola.circuit import sdd_files

        sdd_files.write_sdd(self, sdd_path, vtree_path, vtree)

    # checks ---------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        checked_names(self.variables, "labels and given")
        n = self.num_nodes
        if n == 0 or len(self.literal) != n or len(self.child_start) != n + 1:
            raise FormatError(f"circuit arrays disagree: {n} kinds, {len(self.literal)} literals")
        counts = np.diff(self.child_start)
        if self.child_start[0] != 0 or self.child_start[-1] != len(self.children) or np.any(counts < 0):
            raise FormatError("child_start is not a sequence of offsets into children")
        if np.any((self.kind < LITERAL) | (self.kind > SUM)):
            raise FormatError("unknown node kind")
        parents = np.repeat(np.arange(n), counts)
        if np.any(self.children < 0) or np.any(self.children >= parents):
            raise FormatError(f"node {_first(parents, self.children >= parents)} comes before one of its children")
        has_parent = np.zeros(n, bool)
        has_parent[self.children] = has_parent[-1] = True
        if not has_parent.all():
            raise FormatError(f"node {int(np.argmin(has_parent))} is not below the root, which is the last node")
        is_literal = self.kind == LITERAL
        variable = np.abs(self.literal.astype(np.int64))
        bad = is_literal & ((counts > 0) | (variable == 0) | (variable > self.num_variables))
        bad |= ~is_literal & (self.literal != 0)
        bad |= (self.kind == SUM) & (counts == 0)
        if np.any(bad):
            raise FormatError(f"node {int(np.flatnonzero(bad)[0])} is not a valid literal, product or sum")
        if len(self.zero_suppressed) != self.num_variables or np.any(self.zero_suppressed[self.num_labels :]):
            raise FormatError("zero_suppressed must have one entry per variable and be false for given variables")
        if self.vtree is not None and self.vtree.num_variables != self.num_variables:
            raise FormatError(f"the vtree has {self.vtree.num_variables} variables, the circuit {self.num_variables}")


def _frozen(values: npt.ArrayLike, dtype: Any) -> npt.NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _first(values: npt.NDArray[Any], where: npt.NDArray[np.bool_]) -> int:
    return int(values[np.flatnonzero(where)[0]]) if np.any(where) else 0
