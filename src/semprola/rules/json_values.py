"""Values against JSON schemas, as far as a schema can have finitely many values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from semprola.errors import FormatError
from semprola.logic import FALSE, TRUE, And, Formula, Not, Or, exactly

_WORDS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", *_WORDS})
"""Keywords that restrict nothing."""
_LISTS, _PARTS = ("allOf", "anyOf", "oneOf"), ("not", "if", "then", "else")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_MINE = frozenset(("type", "enum", "const", "$ref", *_BOUNDS, *_LISTS, *_PARTS))
_SHAPES = (
    *((keyword, list, "a list") for keyword in ("enum", "required", *_LISTS)),
    *((keyword, Mapping, "an object") for keyword in ("properties", "dependentRequired", "dependentSchemas")),
    *((keyword, int | float, "a number") for keyword in _BOUNDS),
    ("type", str | list, "a text or a list"),
)
_MOST_VALUES = 10_000
_DEEPEST = 100


def resolved(schema: Any, root: Any, place: str) -> Mapping[str, Any]:
    """A schema with its reference, if it is one, and true and false in their long form."""
    if isinstance(schema, bool):
        return {} if schema else {"enum": []}
    if not isinstance(schema, Mapping):
        raise FormatError(f"from_json_schema: {place} must be a schema, not {schema!r:.60}")
    if place.count("/") > 2 * _DEEPEST:
        raise FormatError(f"from_json_schema: the schema is more than {_DEEPEST} levels deep; does it refer to itself?")
    for keyword, kind, said in _SHAPES:
        if keyword in schema and not isinstance(schema[keyword], kind):
            raise FormatError(f"from_json_schema: {keyword!r} at {place} must be {said}, not {schema[keyword]!r:.60}")
    names = [schema.get("required", []), *schema.get("dependentRequired", {}).values()]
    if any(not isinstance(each, list) or any(not isinstance(name, str) for name in each) for each in names):
        raise FormatError(f"from_json_schema: what is required at {place} must be lists of names of properties")
    if schema.get("multipleOf", 1) <= 0:
        raise FormatError(f"from_json_schema: 'multipleOf' at {place} must be above 0, not {schema['multipleOf']}")
    if "$ref" not in schema:
        return schema
    reference, target = schema["$ref"], root
    for part in str(reference).removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not str(reference).startswith("#") or not isinstance(target, Mapping) or part not in target:
            raise FormatError(f"from_json_schema: {place} refers to {reference!r}, which is not in the schema")
        target = target[part]
    if target is root or not str(reference).startswith("#"):
        raise FormatError(f"from_json_schema: {place} refers to {reference!r}: only other parts of the schema work")
    others = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {"allOf": [target, others]} if set(others) - ANNOTATIONS else {"allOf": [target]}


def refuse(schema: Mapping[str, Any], known: Collection[str], place: str) -> None:
    """Refuse keywords other than these."""
    for keyword in schema:
        if keyword not in known and keyword not in ANNOTATIONS:
            raise FormatError(f"from_json_schema: {keyword!r} at {place} is not among the keywords that can be rules")


def listed_schemas(schema: Mapping[str, Any], place: str) -> list[tuple[str, Any]]:
    """The schemas that a schema combines, with their places."""
    found = [(f"{place}/{key}/{i}", part) for key in _LISTS for i, part in enumerate(schema.get(key, ()))]
    found += [(f"{place}/{key}", schema[key]) for key in _PARTS if key in schema]
    depending = schema.get("dependentSchemas", {})
    return found + [(f"{place}/dependentSchemas/{key}", part) for key, part in depending.items()]


def combined(schema: Mapping[str, Any], place: str, of: Callable[[Any, str], Formula]) -> list[Formula]:
    """What a schema says by combining others; `of` is what a schema at a place says."""

    def each(key: str) -> list[Formula]:
        return [of(part, f"{place}/{key}/{i}") for i, part in enumerate(schema.get(key, ()))]

    said = each("allOf")
    said += [Or(each("anyOf"))] if "anyOf" in schema else []
    said += [exactly(1, each("oneOf"))] if "oneOf" in schema else []
    said += [Not(of(schema["not"], f"{place}/not"))] if "not" in schema else []
    if "if" in schema:
        holds = of(schema["if"], f"{place}/if")
        said += [Or(Not(holds), of(schema["then"], f"{place}/then"))] if "then" in schema else []
        said += [Or(holds, of(schema["else"], f"{place}/else"))] if "else" in schema else []
    return said


def accepts(schema: Any, value: Any, root: Any, place: str) -> bool:
    """Whether a schema accepts a value that is no object and no list."""
    schema = resolved(schema, root, place)
    refuse(schema, _MINE, place)
    said = [_is_kind(value, schema["type"], place)] if "type" in schema else []
    said += [any(equal(value, each) for each in schema["enum"])] if "enum" in schema else []
    said += [equal(value, schema["const"])] if "const" in schema else []
    said += [_in_bound(value, keyword, schema[keyword]) for keyword in _BOUNDS if keyword in schema]
    parts = combined(schema, place, lambda part, at: TRUE if accepts(part, value, root, at) else FALSE)
    return all(said) and And(parts).simplify() is TRUE


def candidates(schema: Any, root: Any, place: str) -> list[Any] | None:
    """Finitely many values, among which are all that a schema accepts; None if there may be more."""
    schema = resolved(schema, root, place)
    if "const" in schema:
        return _plain([schema["const"]], place)
    if "enum" in schema:
        return _plain(schema["enum"], place)
    for i, part in enumerate(schema.get("allOf", ())):
        if (found := candidates(part, root, f"{place}/allOf/{i}")) is not None:
            return found
    for keyword in ("anyOf", "oneOf"):
        lists = [candidates(part, root, f"{place}/{keyword}/{i}") for i, part in enumerate(schema.get(keyword, ()))]
        if lists and all(found is not None for found in lists):
            return _plain([value for found in lists for value in found or ()], place)
    if "type" not in schema:
        return None
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    of_kinds = [_of_kind(kind, schema) for kind in kinds]
    if any(found is None for found in of_kinds):
        return None
    return _plain([value for found in of_kinds for value in found or ()], place)


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _plain(values: Iterable[Any], place: str) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, Mapping | list):
            raise FormatError(f"from_json_schema: a value at {place} is an object or a list; only single values work")
        if not any(equal(value, other) for other in found):
            found.append(value)
    return found


def _of_kind(kind: str, schema: Mapping[str, Any]) -> list[Any] | None:
    if kind == "boolean":
        return [True, False]
    if kind == "null":
        return [None]
    low, high = schema.get("minimum"), schema.get("maximum")
    if kind != "integer" or low is None or high is None or high - low > _MOST_VALUES:
        return None
    return list(range(-int(-low // 1), int(high // 1) + 1))


def _is_kind(value: Any, kinds: Any, place: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    is_kind = {
        "boolean": isinstance(value, bool),
        "null": value is None,
        "string": isinstance(value, str),
        "number": number,
        "integer": number and value == value // 1,
        "object": False,
        "array": False,
    }
    asked = [kinds] if isinstance(kinds, str) else kinds
    for kind in asked:
        if kind not in is_kind:
            raise FormatError(f"from_json_schema: {place} has unknown type {kind!r}")
    return any(is_kind[kind] for kind in asked)


def _in_bound(value: Any, keyword: str, bound: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    if keyword == "multipleOf":
        return bool(value % bound == 0)
    if keyword in ("minimum", "exclusiveMinimum"):
        return value >= bound if keyword == "minimum" else value > bound
    return value <= bound if keyword == "maximum" else value < bound
