"""ARFF files with a class attribute of type `hierarchical`, as the Clus collection publishes them.

liac-arff reads the format, dense and sparse. It does not know the type `hierarchical`, nor comments at the end of a
row, so the text is prepared first: the class becomes a string attribute, and line numbers stay as they are.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from semprola.errors import FormatError, SemprolaError

ROOT = "root"
"""The name of the label above all others in files that list edges. It is always on, so it is no label here."""

_ATTRIBUTE = re.compile(r"^\s*@attribute\s+('[^']*'|\"[^\"]*\"|[^\s{]+)\s*(\S.*)$", re.IGNORECASE)
_CLASS = re.compile(r"^hierarchical\s+(\S.*)$", re.IGNORECASE)
_DATA = re.compile(r"^\s*@data\b", re.IGNORECASE)
_NUMERIC = ("NUMERIC", "REAL", "INTEGER")
_FORMS = ("auto", "paths", "edges")


@dataclass(frozen=True, eq=False)
class HierarchicalArff:
    """One file.

    Args:
        names: the attributes, without the class.
        categories: for every attribute its values, or None if it is numeric.
        values: numbers, and the index among the categories of nominal attributes; NaN where missing [rows, attributes].
        graph: the hierarchy, with edges from child to parent; parents come before children among its nodes.
        y: labels in the order of the graph's nodes; a label's ancestors are on with it [rows, labels].
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...] | None, ...]
    values: NDArray[np.float64]
    graph: Any
    y: NDArray[np.bool_]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.values)


def read_arff(path: str | Path, form: str = "auto") -> HierarchicalArff:
    """Read a file; one whose name ends in `.xz` is unpacked on the way.

    Args:
        path: the file.
        form: what the class attribute lists: "paths" (`01/01/03` lies below `01/01`), "edges" (`parent/child`, with
            one label `root` on top), or "auto": edges if every entry has two parts and `root` is among the first ones.

    Raises:
        FormatError: the file is not of this format; the message names the line.
        SemprolaError: liac-arff is not installed.

    Example:
        >>> import tempfile
        >>> text = "@relation pets\\n@attribute size numeric\\n@attribute class hierarchical a,a/cat,a/dog\\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "pets.arff"
        ...     _ = path.write_text(text + "@data\\n3,a/cat\\n9,a/cat@a/dog\\n")
        ...     read_arff(path).y.astype(int).tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    if form not in _FORMS:
        raise ValueError(f"form must be one of {', '.join(_FORMS)}, not {form!r}")
    text = _Prepared(path, _read_text(path))
    graph = hierarchy_graph(text.classes, form, text.where_class)
    attributes, rows = _decode(text)
    place = text.class_place
    columns = [i for i in range(len(attributes)) if i != place]
    for i in columns:
        kind = attributes[i][1]
        if isinstance(kind, str) and kind.upper() not in _NUMERIC:
            raise FormatError(
                f"{path}: attribute {text.names[i]!r} is of type {kind}: only numeric and nominal ones can be read"
            )
    kinds = [attributes[i][1] for i in columns]
    categories = tuple(None if isinstance(kind, str) else tuple(kind) for kind in kinds)
    values = _values(rows, columns, categories)
    y = _labels([row.get(place) if isinstance(row, dict) else row[place] for row in rows], graph, text)
    return HierarchicalArff(tuple(text.names[i] for i in columns), categories, values, graph, y)


def hierarchy_graph(entries: Sequence[str], form: str = "auto", where: str = "the class attribute") -> Any:
    """The hierarchy as a networkx DiGraph from child to parent, parents before children.

    Raises:
        FormatError: an entry is not of the form, or the edges have a cycle.

    Example:
        >>> sorted(hierarchy_graph(["a/b/c", "d"]).edges)
        [('a/b', 'a'), ('a/b/c', 'a/b')]
        >>> sorted(hierarchy_graph(["root/a", "a/b", "root/c", "c/b"]).edges)
        [('b', 'a'), ('b', 'c')]
    """
    parts = [entry.split("/") for entry in entries]
    if any(not all(part for part in entry) for entry in parts):
        raise FormatError(f"{where}: a label of the hierarchy has an empty part")
    if form == "auto":
        form = "edges" if all(len(p) == 2 for p in parts) and any(p[0] == ROOT for p in parts) else "paths"
    pairs: dict[tuple[str, str | None], None] = {}
    for entry in parts:
        if form == "paths":
            for depth in range(1, len(entry) + 1):
                pairs["/".join(entry[:depth]), "/".join(entry[: depth - 1]) or None] = None
        elif len(entry) == 2:
            pairs[entry[1], None if entry[0] == ROOT else entry[0]] = None
        else:
            raise FormatError(f"{where}: {'/'.join(entry)!r} is not an edge parent/child")
    graph = nx.DiGraph()
    graph.add_nodes_from(name for name, _ in pairs)
    graph.add_edges_from((child, parent) for child, parent in pairs if parent is not None)
    try:
        generations = list(nx.topological_generations(graph.reverse()))
    except nx.NetworkXUnfeasible:
        raise FormatError(f"{where}: the hierarchy has a cycle") from None
    ordered = nx.DiGraph()
    ordered.add_nodes_from(name for generation in generations for name in sorted(generation))
    ordered.add_edges_from(graph.edges)
    return ordered


class _Prepared:
    """A text that liac-arff can read, with what was taken out of it."""

    def __init__(self, path: str | Path, text: str) -> None:
        self.path = path
        self.class_place = -1
        self.names: list[str] = []
        self.data_lines: list[int] = []  # numbers of the lines with a row, from 1
        lines = text.splitlines()
        in_data = False
        for number, line in enumerate(lines, 1):
            if in_data:
                lines[number - 1] = bare = _without_comment(line)
                if bare:
                    self.data_lines.append(number)
            elif _DATA.match(line):
                in_data = True
            elif found := _ATTRIBUTE.match(line):
                lines[number - 1] = self._attribute(number, found[1].strip("'\""), found[2].strip())
        if self.class_place < 0:
            raise FormatError(f"{path}: no attribute of type hierarchical")
        if not self.data_lines:
            raise FormatError(f"{path}: no rows after @data")
        self.text = "\n".join(lines)
        self.is_sparse = lines[self.data_lines[0] - 1].startswith("{")

    def _attribute(self, number: int, name: str, kind: str) -> str:
        """The declaration with a number for a name: published files use some names twice, which liac-arff refuses."""
        if found := _CLASS.match(kind):
            if self.class_place >= 0:
                raise FormatError(f"{self.path}:{number}: a second hierarchical attribute")
            self.class_place = len(self.names)
            self.where_class = f"{self.path}:{number}"
            self.classes = [entry.strip() for entry in found[1].split(",") if entry.strip()]
            kind = "STRING"
        self.names.append(name)
        return f"@ATTRIBUTE a{len(self.names)} {kind}"


def _read_text(path: str | Path) -> str:
    try:
        data = Path(path).read_bytes()
        return (lzma.decompress(data) if str(path).endswith(".xz") else data).decode("utf-8")
    except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read ({error})") from None


def _without_comment(line: str) -> str:
    """The line up to a % outside of quotes."""
    if "%" not in line:
        return line.strip()
    quote = ""
    for i, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "%":
            return line[:i].strip()
    return line.strip()


def _decode(text: _Prepared) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Attributes, and rows as lists, or as dicts by column if the file is sparse."""
    try:
        import arff
    except ImportError:
        raise SemprolaError("ARFF files are read by liac-arff: install semprola[experiments]") from None
    try:
        content = arff.loads(text.text, return_type=arff.LOD if text.is_sparse else arff.DENSE)
    except arff.ArffException as error:
        line = getattr(error, "line", -1)
        where = f"{text.path}:{line}" if line and line > 0 else str(text.path)
        reason = str(error).splitlines()[0].removesuffix(".")
        raise FormatError(f"{where}: not an ARFF file that can be read ({reason})") from None
    except ValueError as error:
        raise FormatError(f"{text.path}: not an ARFF file that can be read ({error})") from None
    return content["attributes"], content["data"]


def _values(rows: list[Any], columns: list[int], categories: tuple[tuple[str, ...] | None, ...]) -> NDArray[np.float64]:
    """Numbers [rows, attributes]; what a sparse row leaves out is 0, or the first category."""
    values = np.zeros((len(rows), len(columns)))
    for j, (column, names) in enumerate(zip(columns, categories, strict=True)):
        if isinstance(rows[0], dict):
            cells = [row.get(column, 0.0 if names is None else names[0]) for row in rows]
        else:
            cells = [row[column] for row in rows]
        if names is not None:
            index = {name: float(i) for i, name in enumerate(names)}
            cells = [None if cell is None else index[cell] for cell in cells]
        values[:, j] = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    return values


def _labels(cells: list[Any], graph: Any, text: _Prepared) -> NDArray[np.bool_]:
    """Labels of every row with their ancestors [rows, labels]."""
    place = {name: i for i, name in enumerate(graph)}
    closed: dict[str, list[int]] = {}
    y = np.zeros((len(cells), len(place)), np.bool_)
    for row, (cell, line) in enumerate(zip(cells, text.data_lines, strict=True)):
        if cell is None or not str(cell).strip():
            raise FormatError(f"{text.path}:{line}: the row has no labels")
        for name in str(cell).split("@"):
            name = name.strip()
            if name == ROOT and name not in place:
                continue
            if name not in place:
                raise FormatError(f"{text.path}:{line}: label {name[:60]!r} is not in the class attribute")
            if name not in closed:
                closed[name] = [place[name], *(place[above] for above in nx.descendants(graph, name))]
            y[row, closed[name]] = True
    return y
