"""The finite part of JSON Schema as rules."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from semprola.constraints.variables import Categorical
from semprola.errors import FormatError
from semprola.logic import FALSE, TRUE, And, Bool, Formula, Not, Or, at_most
from semprola.rules.json_values import (
    ANNOTATIONS,
    accepts,
    candidates,
    combined,
    equal,
    listed_schemas,
    refuse,
    resolved,
)
from semprola.rules.reading import text_of

_ABSENT = "absent"
_MINE = {
    "type", "enum", "const", "properties", "required", "additionalProperties", "dependentRequired", "dependentSchemas",
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref",
}  # fmt: skip


def from_json_schema(schema: Any) -> Formula:
    """The objects that a JSON Schema allows, as a formula, if each property has finitely many values.

    - A boolean property is the label of its name.
    - A property with other values (``enum``, ``const``, integers with a minimum and a maximum, null) is a categorical
      variable, with labels such as "colour=red".
    - A property that the schema lets be absent also has the label "colour=absent".
    - A property whose values the schema does not restrict is the label of its name, which is 1 if it is present.

    Understood are ``properties``, ``required``, ``additionalProperties`` (true or false), ``dependentRequired``,
    ``dependentSchemas``, ``allOf``, ``anyOf``, ``oneOf``, ``not``, ``if``/``then``/``else``, and ``$ref`` into the same
    schema. Properties that the schema does not name are taken to be absent.

    Args:
        schema: the schema of an object, as a dictionary, as JSON text, or the path of a .json file.

    Raises:
        FormatError: something else is in the schema, or a property has values without end; the message names it.

    Example:
        >>> rules = from_json_schema({
        ...     "properties": {"urgent": {"type": "boolean"}, "kind": {"enum": ["bug", "question"]}},
        ...     "required": ["urgent", "kind"],
        ...     "if": {"properties": {"kind": {"const": "question"}}},
        ...     "then": {"properties": {"urgent": {"const": False}}},
        ... })
        >>> rules.labels
        ('urgent', 'kind=bug', 'kind=question')
        >>> import semprola as sp
        >>> sp.rules.model_count(rules)
        3
    """
    if isinstance(schema, str | os.PathLike):
        try:
            schema = json.loads(text_of(schema))
        except json.JSONDecodeError as error:
            raise FormatError(f"from_json_schema: not JSON: {error}") from None
    if not isinstance(schema, Mapping):
        raise FormatError(f"from_json_schema takes the schema of an object as a dictionary, not {schema!r:.60}")
    return _Reader(schema).whole()


class _Property:
    """What is said about one property, as formulas."""

    def __init__(self, name: str, values: list[Any] | None, is_required: bool) -> None:
        self.name, self.values, self.is_required = name, values, is_required
        self.label = Bool(name)
        self.absence = Bool(f"{name}={_ABSENT}")
        self.variable: Categorical | None = None
        if values is None or all(isinstance(value, bool) for value in values):
            return
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        texts += [] if is_required else [_ABSENT]
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise FormatError(f"from_json_schema: two states of property {name!r} have one label, '{name}={twice}'")
        self.variable = Categorical(name, texts)

    @property
    def absent(self) -> Formula:
        if self.is_required:
            return FALSE
        if self.values is None:
            return ~self.label
        return self.absence

    def of(self, schema: Any, root: Any, place: str) -> Formula:
        """The property is absent, or its value is one that a schema accepts."""
        if self.values is None:
            if schema is True or not set(resolved(schema, root, place)) - ANNOTATIONS:
                return TRUE
            hint = "give it an enum, a const, type boolean, or type integer with minimum and maximum in 'properties'"
            raise FormatError(f"from_json_schema: property {self.name!r} at {place} has values without end: {hint}")
        states = [self._is(at) for at, value in enumerate(self.values) if accepts(schema, value, root, place)]
        if len(states) == len(self.values) and (self.variable is not None or len(states) == 2):
            return TRUE
        return Or([self.absent, *states])

    def is_value(self, value: Any) -> Formula:
        """The property is present with this value."""
        if self.values is None:
            raise FormatError(f"from_json_schema: property {self.name!r} has values without end, but one is compared")
        return Or([self._is(at) for at, own in enumerate(self.values) if equal(own, value)])

    def rule(self) -> Formula:
        """The property has at most one state. A label that is free is in it, too: it would be lost otherwise."""
        if self.variable is not None:
            return self.variable.rule
        if self.values is None:
            return TRUE if self.is_required else at_most(1, [self.label])
        return at_most(1, [self.label] if self.is_required else [self.label, self.absence])

    def _is(self, at: int) -> Formula:
        assert self.values is not None
        if self.variable is not None:
            return Bool(self.variable.labels[at])
        return self.label if self.values[at] else ~self.label & ~self.absent


class _Reader:
    """Reads one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.root = schema
        named: dict[str, None] = {}
        self._name(schema, "#", named)
        always = list(self._always(schema, "#"))
        required = {name for each in always for name in each.get("required", ())}
        self.properties: dict[str, _Property] = {}
        for name in named:
            said = [each["properties"][name] for each in always if name in each.get("properties", {})]
            place = f"#/properties/{name}"
            found = next((known for each in said if (known := candidates(each, schema, place)) is not None), None)
            values = found and [v for v in found if all(accepts(each, v, schema, place) for each in said)]
            self.properties[name] = _Property(name, values, name in required)

    def whole(self) -> Formula:
        """Everything that the schema says."""
        said = [*(each.rule() for each in self.properties.values()), self._formula(self.root, "#").simplify()]
        return And([part for part in said if part is not TRUE])

    def _name(self, schema: Any, place: str, named: dict[str, None]) -> None:
        """The properties that a schema names, in order."""
        schema = resolved(schema, self.root, place)
        named.update(dict.fromkeys(schema.get("properties", {})))
        named.update(dict.fromkeys(schema.get("required", ())))
        for name, others in schema.get("dependentRequired", {}).items():
            named.update(dict.fromkeys([name, *others]))
        named.update(dict.fromkeys(schema.get("dependentSchemas", {})))
        for value in [*schema.get("enum", ()), schema.get("const")]:
            named.update(dict.fromkeys(value if isinstance(value, Mapping) else ()))
        for at, part in listed_schemas(schema, place):
            self._name(part, at, named)

    def _always(self, schema: Any, place: str) -> Iterable[Mapping[str, Any]]:
        """The parts of a schema that hold in any case."""
        schema = resolved(schema, self.root, place)
        yield schema
        for i, part in enumerate(schema.get("allOf", ())):
            yield from self._always(part, f"{place}/allOf/{i}")

    def _formula(self, schema: Any, place: str) -> Formula:
        if isinstance(schema, bool):
            return TRUE if schema else FALSE
        schema = resolved(schema, self.root, place)
        refuse(schema, _MINE, place)
        return And([*self._about_properties(schema, place), *combined(schema, place, self._formula)])

    def _about_properties(self, schema: Mapping[str, Any], place: str) -> Iterable[Formula]:
        mine = self.properties
        if "type" in schema:
            kinds = schema["type"]
            yield TRUE if "object" in ([kinds] if isinstance(kinds, str) else kinds) else FALSE
        for name, part in schema.get("properties", {}).items():
            yield mine[name].of(part, self.root, f"{place}/properties/{name}")
        yield from (Not(mine[name].absent) for name in schema.get("required", ()))
        if schema.get("additionalProperties", True) not in (True, False, {}):
            raise FormatError(f"from_json_schema: additionalProperties at {place} must be true or false")
        if schema.get("additionalProperties") is False:
            yield from (each.absent for name, each in mine.items() if name not in schema.get("properties", {}))
        for name, others in schema.get("dependentRequired", {}).items():
            yield from (Or([mine[name].absent, Not(mine[other].absent)]) for other in others)
        for name, part in schema.get("dependentSchemas", {}).items():
            yield Or([mine[name].absent, self._formula(part, f"{place}/dependentSchemas/{name}")])
        if "enum" in schema:
            yield Or([self._equals(value) for value in schema["enum"]])
        if "const" in schema:
            yield self._equals(schema["const"])

    def _equals(self, value: Any) -> Formula:
        """The object is this one."""
        if not isinstance(value, Mapping):
            return FALSE
        states = (p.is_value(value[name]) if name in value else p.absent for name, p in self.properties.items())
        return And(list(states))
