"""JSON Schemas as rules, compared with the package jsonschema on all objects."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import semprola as sp
from semprola.errors import FormatError

NAMES = ["a", "b", "kind", "n", "extra"]
PROPERTIES: dict[str, Any] = {
    "a": {"type": "boolean"},
    "b": {"$ref": "#/$defs/flag"},
    "kind": {"enum": ["bug", "question", None]},
    "n": {"type": "integer", "minimum": 0, "exclusiveMaximum": 3, "maximum": 9},
}
STATES = {"a": [True, False], "b": [True, False], "kind": ["bug", "question", None], "n": [0, 1, 2], "extra": ["any"]}


def _part(chance: random.Random, depth: int) -> Any:
    """A random schema."""
    if depth == 0 or chance.random() < 0.3:
        name = chance.choice(NAMES[:4])
        value = chance.choice(STATES[name])
        return chance.choice(
            [
                {"properties": {name: {"const": value}}},
                {"properties": {name: {"not": {"enum": [value, 7]}}}, "required": [chance.choice(NAMES)]},
                {"required": chance.sample(NAMES, 2)},
                {"dependentRequired": {chance.choice(NAMES): [chance.choice(NAMES)]}},
                {"properties": {"n": {"if": {"minimum": 1}, "then": {"multipleOf": 2}, "else": chance.random() < 0.5}}},
                {"properties": {"kind": {"type": chance.choice(["string", "null", ["null", "integer"]])}, "a": True}},
                {"enum": [{"a": True}, {name: value, "a": None}, {name: value}]} if chance.random() < 0.3 else True,
                {"const": {name: value}} if chance.random() < 0.5 else {"type": ["object", "null"]},
                {"properties": {"a": {}, "n": {"oneOf": [{"minimum": 1}, {"maximum": 1}]}, "kind": {}, "b": {}}}
                | {"additionalProperties": False},
            ]
        )
    below = [_part(chance, depth - 1) for _ in range(3)]
    return chance.choice(
        [
            {chance.choice(["allOf", "anyOf", "oneOf"]): below},
            {"not": below[0]},
            {"if": below[0], "then": below[1], "else": below[2]},
            {"if": below[0], "else": below[2]},
            {"dependentSchemas": {chance.choice(NAMES): below[0]}},
        ]
    )


def _labels(states: dict[str, Any], rules: sp.logic.Formula) -> dict[str, int]:
    """The labels of an object."""
    found = dict.fromkeys([*rules.labels, *NAMES], 0)
    for name in NAMES:
        if name not in states:
            found[f"{name}=absent"] = 1
        elif name in ("kind", "n"):
            value = states[name]
            found[f"{name}={value if isinstance(value, str) else json.dumps(value)}"] = 1
        else:
            found[name] = 1 if name == "extra" else int(states[name])
    return found


@pytest.mark.parametrize("seed", range(40))
def test_objects_are_those_that_jsonschema_accepts(seed: int) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    chance = random.Random(seed)
    schema = {"properties": PROPERTIES, "$defs": {"flag": {"type": "boolean"}}, "dependentRequired": {"extra": []}}
    schema |= {"type": "object", "title": "a test", "allOf": [_part(chance, 2)]}
    schema |= {"required": ["a"]} if seed % 2 else {}
    rules = sp.rules.from_json_schema(json.dumps(schema) if seed % 3 else schema)
    judge = jsonschema.Draft202012Validator(schema)
    count = 0
    for values in itertools.product(*([None, *((v,) for v in STATES[name])] for name in NAMES)):
        states = {name: value[0] for name, value in zip(NAMES, values, strict=True) if value is not None}
        allowed = judge.is_valid(states)
        count += allowed
        states_of_absence = (f"{name}=absent" if name != "extra" else name for name in NAMES if name not in states)
        if not set(states_of_absence) <= set(rules.labels):  # a required property is absent
            assert not allowed
            continue
        assert rules.evaluate(_labels(states, rules)) == allowed, states
    named = [name for name in NAMES if any(label.split("=")[0] == name for label in rules.labels)]
    if set(named) == {*NAMES}:
        assert sp.rules.model_count(rules) == count


def test_labels_and_places(tmp_path: Path) -> None:
    schema = {"properties": {"a": {"type": "boolean"}, "c": {"const": 3}}, "required": ["a"]}
    assert sorted(sp.rules.from_json_schema(schema).labels) == ["a", "c=3", "c=absent"]
    assert sp.rules.model_count(sp.rules.from_json_schema({"dependentRequired": {"a": ["b"]}})) == 3
    path = tmp_path / "ticket.json"
    path.write_text(json.dumps(schema))
    for source in (path, str(path), json.dumps(schema)):
        assert sp.rules.from_json_schema(source) == sp.rules.from_json_schema(schema)
    # true is not 1, and 1.0 is 1
    kinds = sp.rules.from_json_schema({"properties": {"v": {"enum": [1, True, 1.0, "x"]}}, "required": ["v"]})
    assert sorted(kinds.labels) == ["v=1", "v=true", "v=x"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"x": {"type": "string"}}}, "'x' at #/properties/x has values without end"),
        ({"properties": {"x": {"enum": ["a"], "pattern": "a"}}}, "'pattern' at #/properties/x"),
        ({"anyOf": [{"minProperties": 1}]}, "'minProperties' at #/anyOf/0"),
        ({"properties": {"x": {"enum": [{}]}}}, "object or a list"),
        ({"properties": {"x": {"enum": ["absent"]}}}, "have one label, 'x=absent'"),
        ({"properties": {"x": {"$ref": "#/$defs/y"}}}, "refers to '#/\\$defs/y'"),
        ({"$defs": {"y": {"not": {"$ref": "#/$defs/y"}}}, "$ref": "#/$defs/y"}, "does it refer to itself"),
        ({"properties": {"x": {"enum": [1], "type": "bool"}}}, "unknown type 'bool'"),
        ({"additionalProperties": {"type": "boolean"}}, "must be true or false"),
        ("{", "not JSON"),
        (3, "as a dictionary"),
        ("missing.json", "missing.json: no such file"),
        ({"properties": {"x": 3}}, "must be a schema"),
        ({"required": "ab"}, "must be a list"),
        ({"required": [1]}, "lists of names"),
        ({"dependentRequired": {"a": 3}}, "lists of names"),
        ({"properties": {"x": {"enum": [1], "multipleOf": 0}}}, "must be above 0"),
    ],
)
def test_what_is_not_a_rule_is_refused_by_name(schema: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        sp.rules.from_json_schema(schema)
