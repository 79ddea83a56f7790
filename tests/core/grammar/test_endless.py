"""Schemas and grammars that need themselves are told from those that are merely recursive."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from core.sampling.grammar import endless_grammar, endless_schema
from core.sampling.grammar.least_fixed_point import find_cycle, least_fixed_point

SELF = {"$ref": "#"}
NODE = {"$ref": "#/$defs/node"}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def with_node(node: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**NODE, "$defs": {"node": node, **more}}


ENDLESS = [
    (an_object(child=SELF), "the schema requires itself"),
    (with_node(an_object(next=NODE)), "node requires itself"),
    (with_node(an_object(b={"$ref": "#/$defs/b"}), b=an_object(a=NODE)), "node requires b requires node"),
    ({"type": "array", "items": SELF, "minItems": 1}, "the schema requires itself"),
    ({"type": "array", "prefixItems": [{"type": "null"}, SELF], "minItems": 2}, "requires itself"),
    ({"type": "array", "items": [SELF], "minItems": 1}, "requires itself"),
    ({"anyOf": [an_object(a=SELF), {"type": "array", "items": SELF, "minItems": 3}]}, "requires itself"),
    ({"oneOf": [an_object(a=SELF), an_object(b=SELF)]}, "requires itself"),
    ({"allOf": [{"type": "object"}, {"properties": {"a": SELF}, "required": ["a"]}]}, "no value that ends"),
    ({"type": "object", "required": ["x"], "additionalProperties": SELF}, "requires itself"),
    ({"type": "object", "minProperties": 1, "additionalProperties": SELF}, "requires itself"),
    (an_object(deep=an_object(deeper={"type": "array", "minItems": 1, "items": SELF})), "requires itself"),
    ({"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/a%20b~1c"}, "definitions": {"a b/c": SELF}}, ""),
    (an_object(start=NODE) | {"$defs": {"node": an_object(next=NODE)}}, "node requires itself"),
    ({"type": ["object", "array"], "properties": {"a": SELF}, "required": ["a"], "items": SELF, "minItems": 1}, ""),
]
FINITE = [
    {"type": "object", "properties": {"child": SELF}},
    with_node({"anyOf": [an_object(next=NODE), {"type": "null"}]}),
    with_node(an_object(value={"type": "integer"}, next={"anyOf": [NODE, {"type": "null"}]})),
    with_node(an_object(children={"type": "array", "items": NODE})),
    with_node({"type": ["object", "null"], "properties": {"next": NODE}, "required": ["next"]}),
    {"properties": {"a": SELF}, "required": ["a"]},
    {"type": "array", "prefixItems": [SELF]},
    {"type": "array", "prefixItems": [{"type": "null"}, SELF], "minItems": 1},
    {"type": "array", "prefixItems": [{"type": "null"}], "items": SELF, "minItems": 1},
    {"type": "object", "patternProperties": {"^x": SELF}, "required": ["y"]},
    {"type": "object", "patternProperties": {"^x": SELF}, "additionalProperties": SELF, "required": ["y"]},
    {"type": "object", "additionalProperties": SELF},
    {"allOf": [{"properties": {"a": SELF}, "required": ["a"]}, {"type": ["object", "string"]}]},
    {"enum": [{"a": 1}], **an_object(a=SELF)},
    {"const": 3, **an_object(a=SELF)},
    an_object(a={"$ref": "https://example.com/other"}),
    an_object(a={"$ref": "#anchor"}),
    an_object(a={"$ref": "#/nowhere"}),
    {"$defs": {"inner": {"$id": "https://example.com/inner", **an_object(a=SELF)}}, "$ref": "#/$defs/inner"},
    with_node({"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]}),
    {"$defs": {"unused": an_object(a={"$ref": "#/$defs/unused"})}, "type": "null", "x": SELF},
    an_object(a=False),
    True,
    False,
    3,
    [SELF],
    {"type": 3, "required": 4, "properties": [], "items": SELF, "minItems": "x", "anyOf": {}, "$ref": 5},
    {"type": "object", "required": [1, "a"], "properties": {"a": {"type": "null"}}, "anyOf": [SELF, 3], "x": SELF},
]


@pytest.mark.parametrize(("schema", "says"), ENDLESS)
def test_a_schema_that_requires_itself_is_endless(schema: dict[str, Any], says: str) -> None:
    reason = endless_schema.why_endless(json.dumps(schema))
    assert reason is not None
    assert says in reason


@pytest.mark.parametrize("schema", FINITE)
def test_a_schema_that_is_merely_recursive_is_not(schema: object) -> None:
    assert endless_schema.why_endless(json.dumps(schema)) is None


@pytest.mark.parametrize("text", ["", "{", '{"$ref": ', '["$ref"', "[" * 100_000 + '"$ref"'])
def test_what_is_no_schema_is_not_for_this_check_to_refuse(text: str) -> None:
    assert endless_schema.why_endless(text) is None


GRAMMARS_ENDLESS = [
    ('start: "(" start ")"', "start requires itself"),
    ('start: "x" start | "y" start', "start requires itself"),
    ('start: a\na: "x" b\nb: "y" a', "a requires b requires a"),
    ('start: head a\nhead[lazy]: /x+/\na: ("z" a)+', "a requires itself"),
    ('start: x{2,3} // twice\nx: "b" x', "x requires itself"),
    ('start: x ~ 2..3\nx: "b" x', "x requires itself"),
    ('start: "a".."z" (start | start)\n   | "y" start', "start requires itself"),
    ('%ignore /[ ]+/\n\nstart: "a" _x -> name\n_x: <|im_end|> _x\n%import common.INT', "_x requires itself"),
    ('start: "a" %json ' + json.dumps(an_object(child=SELF), indent=1) + ' "b"', "the schema requires itself"),
]
GRAMMARS_FINITE = [
    'start: "(" start ")" | "x"',
    'start: "(" start? ")"',
    'start: "a" [start]',
    'start: x*\nx: "a" x',
    'start: x{0,3}\nx: "a" x',
    'start: x{,3}\nx: "a" x',
    'start: ("a" start | "b")',
    'start: "a: start" /a: start\\/b/ // start: start\n',
    "start: A\nA: /x/ | /y/ A",
    'start: "a" unknown',
    'start: %json {"start": "x: y", "type": "object"}',
    'start: call\ncall: "x: {" %json {"type": "array", "items": {"$ref": "#"}} "}"',
    'start: "x" start %lark { start: "y" }',
    "start: $ start",
    'start: "unfinished start',
    "(" * 50_000,
    "start: " + "(" * 20_000 + '"x"' + ")" * 20_000,
    "",
]


@pytest.mark.parametrize(("text", "says"), GRAMMARS_ENDLESS)
def test_a_grammar_whose_start_needs_itself_is_endless(text: str, says: str) -> None:
    reason = endless_grammar.why_endless(text)
    assert reason is not None
    assert says in reason


@pytest.mark.parametrize("text", GRAMMARS_FINITE)
def test_a_grammar_that_can_end_or_is_not_understood_is_not(text: str) -> None:
    assert endless_grammar.why_endless(text) is None


def test_large_schemas_and_grammars_take_no_time_to_speak_of() -> None:
    began = time.process_time()
    chain = {f"n{i}": an_object(next={"$ref": f"#/$defs/n{i + 1}"}) for i in range(1500)}
    assert endless_schema.why_endless(json.dumps({"$ref": "#/$defs/n0", "$defs": chain | {"n1500": {}}})) is None
    wide = {"anyOf": [an_object(a={"$ref": f"#/anyOf/{(i + 1) % 1500}"}) for i in range(1500)]}
    endless_schema.why_endless(json.dumps(wide))
    rules = "\n".join(f'r{i}: "x" r{i + 1} | r{i // 2} "y"' for i in range(4000))
    assert endless_grammar.why_endless(f'start: r0\n{rules}\nr4000: "z"') is None
    assert time.process_time() - began < 10.0


def test_the_least_solution_and_the_circle() -> None:
    needs = {"c": [], "a": ["b", "c"], "b": ["a"]}
    found = least_fixed_point(needs, lambda node, known: node == "c" or all(known[one] for one in needs[node]), False)
    assert found == {"c": True, "a": False, "b": False}
    assert find_cycle("x", {"x": "a", "a": "b", "b": "a"}.get) == ["a", "b", "a"]
    assert find_cycle("x", {"x": "a"}.get) == []
    assert least_fixed_point({i: range(1000) for i in range(1000)}, lambda *_: True, False) is None
