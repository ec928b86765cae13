"""OBO files, read by obonet."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from semprola.errors import FormatError, LabelError, SemprolaError
from semprola.logic import And, Bool, Formula, Iff, Or
from semprola.rules.ontologies.ontology import Axiom, Ontology

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def read_obo(path: str | os.PathLike[str], relations: Sequence[str] = ("is_a",)) -> Ontology:
    """The terms and axioms of an OBO file, see :func:`semprola.rules.from_obo`."""
    try:
        import obonet
    except ImportError:
        raise SemprolaError("OBO files need obonet: pip install 'semprola[ontology]'") from None
    source = Path(path)
    if not source.is_file():
        raise FormatError(f"{source}: no such file")
    try:
        graph = obonet.read_obo(source, ignore_obsolete=False)
    except (ValueError, KeyError, AssertionError, IndexError, OSError, EOFError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FormatError(f"{source}: not an OBO file: {reason[:120]}") from None
    data = dict(graph.nodes(data=True))
    obsolete = {term: each for term, each in data.items() if each.get("is_obsolete") == "true"}
    terms = {term: each.get("name", term) for term, each in data.items() if each and term not in obsolete}
    if not terms:
        raise FormatError(f"{source}: there is no [Term] in it")
    relations = [relations] if isinstance(relations, str) else list(relations)
    used = {"is_a", *(each["id"] for each in graph.graph.get("typedefs", ()) if "id" in each)}
    used |= {*(text.split()[0] for each in data.values() for text in each.get("relationship", ()))}
    unknown = next((name for name in relations if name not in used), None)
    if unknown is not None:
        raise LabelError(f"{source}: no term has the relation {unknown!r}; there are {', '.join(sorted(used))}")
    lines = _lines(source)
    axioms: list[Axiom] = []
    left_out: Counter[str] = Counter()
    for term in terms:
        place = f"{source}:{lines.get(term, 0)} {term}"
        for formula in _axioms(term, data[term], terms, relations, left_out):
            axioms.append(Axiom(formula, place))
    replaced = {term: (each.get("replaced_by") or each.get("consider") or [""])[0] for term, each in obsolete.items()}
    return Ontology(source.name, terms, axioms, left_out, replaced)


def _axioms(
    term: str, said: Mapping[str, Any], terms: Mapping[str, str], relations: Sequence[str], left_out: Counter[str]
) -> list[Formula]:
    own, found = Bool(term), []
    pairs = [("is_a", other) for other in said.get("is_a", ())]
    pairs += [(text.split()[0], text.split()[1]) for text in said.get("relationship", ())]
    for relation, other in pairs:
        if relation in relations and other in terms:
            found.append(own >> Bool(other))
        else:
            left_out[relation if other in terms else f"{relation} to a term that is not in the file"] += 1
    for other in said.get("disjoint_from", ()):
        if other in terms:
            found.append(~(own & Bool(other)))
    for other in said.get("equivalent_to", ()):
        if other in terms:
            found.append(Iff(own, Bool(other)))
    for key, join in (("intersection_of", And), ("union_of", Or)):
        parts = said.get(key, ())
        named = [part for part in parts if part in terms]
        if parts and len(named) == len(parts):
            found.append(Iff(own, join([Bool(part) for part in named])))
        elif parts:
            left_out[key] += 1
            # the named parts of an intersection are parents in any case; a named part of a union is a child
            found += [own >> Bool(part) if key == "intersection_of" else Bool(part) >> own for part in named]
    return found


def _lines(path: Path) -> dict[str, int]:
    """The line of each term."""
    found: dict[str, int] = {}
    with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith("id: "):
                found.setdefault(line[4:].split("!")[0].strip(), number)
    return found
