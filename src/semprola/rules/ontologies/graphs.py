"""RDF graphs, read by rdflib: terms with short ids and names."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from semprola.errors import FormatError, SemprolaError

_FORMATS = {
    ".owl": "xml",
    ".rdf": "xml",
    ".xml": "xml",
    ".ttl": "turtle",
    ".n3": "n3",
    ".nt": "nt",
    ".jsonld": "json-ld",
}


def read_graph(path: str | os.PathLike[str]) -> Any:
    """The graph in a file; the suffix says in which format."""
    try:
        import rdflib
    except ImportError:
        raise SemprolaError("OWL and SKOS files need rdflib: pip install 'semprola[ontology]'") from None
    source = Path(path)
    if not source.is_file():
        raise FormatError(f"{source}: no such file")
    beginning = source.read_bytes()[:4096].lstrip()
    kind = _FORMATS.get(source.suffix.lower(), "turtle")
    if kind == "xml" and not beginning.startswith(b"<"):
        kind = "turtle"  # many .owl files are Turtle
    elif kind == "xml" and b"<Ontology" in beginning:
        raise FormatError(f"{source}: this is OWL/XML: save it as RDF/XML or Turtle, for example with Protégé or ROBOT")
    try:
        return rdflib.Graph().parse(source, format=kind)
    except Exception as error:  # the parsers of rdflib raise many kinds of errors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FormatError(f"{source}: cannot be read as {kind}: {reason[:120]}") from None


def short_ids(nodes: Iterable[Any]) -> dict[Any, str]:
    """A short id for each node: the part after "#" or the last "/", or all of it if two would be the same."""
    listed = sorted(set(nodes))
    short = {node: str(node).rstrip("/#").replace("#", "/").rsplit("/", 1)[-1] for node in listed}
    count = Counter(short.values())
    return {node: name if name and count[name] == 1 else str(node) for node, name in short.items()}


def name_of(graph: Any, node: Any, predicate: Any, otherwise: str) -> str:
    """The name of a node: in English if there is one, else without a language, else in any."""
    found = sorted(graph.objects(node, predicate), key=lambda text: (_rank(getattr(text, "language", None)), str(text)))
    return str(found[0]) if found else otherwise


def _rank(language: str | None) -> int:
    return 1 if language is None else 0 if language.lower().startswith("en") else 2
