"""How deep schemas and grammars are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.sampling.grammar.nesting import MOST_LEVELS, deepest, grammar_levels, json_levels, schema_levels


def chain(n: int, **more: Any) -> dict[str, Any]:
    """Definitions each of which refers to the next."""
    definitions: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} | more for i in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": definitions | {f"d{n}": {"type": "null"}}}


def test_the_heaviest_way_counts_and_a_circle_counts_as_a_whole() -> None:
    weights = {"a": 1, "b": 2, "c": 3, "d": 10, "e": 1}
    assert deepest(weights, {"a": "bc", "b": "c", "c": "", "d": "", "e": "a"}) == 10
    assert deepest(weights, {"a": "bc", "b": "c", "c": "", "d": "", "e": "ad"}) == 11
    assert deepest(weights, {"a": "b", "b": "c", "c": "ae", "d": "a", "e": ""}) == 10 + 6 + 1
    assert deepest(weights, {"a": "a", "b": "", "c": "", "d": "", "e": ""}) == 10
    assert deepest({}, {}) == 0


@pytest.mark.parametrize("n", [10, 5_000])
def test_ways_are_followed_however_long(n: int) -> None:
    assert deepest(dict.fromkeys(range(n + 1), 1), {i: [i + 1] for i in range(n)} | {n: []}) == n + 1
    assert deepest(dict.fromkeys(range(n), 1), {i: [(i + 1) % n, 0] for i in range(n)}) == n


def test_a_schema_is_as_deep_as_what_it_refers_to() -> None:
    assert schema_levels({"type": "object", "properties": {"a": {"enum": [1]}}}) == 4
    assert schema_levels({"$ref": "#"}) == 1
    assert schema_levels({"$ref": "#/nowhere"}) == 2
    named = {f"d{i}": {"$anchor": f"a{i}", "$ref": f"#a{i + 1}"} for i in range(1_500)}
    assert schema_levels({"$ref": "#a0", "$defs": named}) > MOST_LEVELS
    assert schema_levels(chain(100)) in range(100, 110)
    assert schema_levels(chain(100, allOf=[{"minLength": 1}])) in range(300, 320)
    assert json_levels(json.dumps(chain(3_000))) > MOST_LEVELS
    assert json_levels("[" * 5_000) == json_levels("nothing") == 0


def test_an_ordinary_schema_is_not_deep() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "other": {"$ref": "#/$defs/leaf"}}}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node, "leaf": {"type": "integer"}}}
    assert schema_levels(schema) < 15
    wide = {"type": "object", "properties": {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(2_000)}}
    assert schema_levels(wide | {"$defs": {f"d{i}": {"type": "null"} for i in range(2_000)}}) < 10


def test_a_grammar_is_as_deep_as_its_rules_and_groups() -> None:
    assert grammar_levels('start: "x"') == 1
    assert grammar_levels('start: a ("b" [ a ])\na: /[(]+/ // (((( start') == 1 + 2 + 1
    assert grammar_levels('start: "start" a\na: start | "x"') == 2
    rules = "\n".join(f'r{i}: "x" r{i + 1}' for i in range(3_000))
    assert grammar_levels(f'start: r0\n{rules}\nr3000: "y"') == 3_002
    assert grammar_levels(f"start: R0\n{rules}\nr3000: 'y'".upper()) > 3_000
    assert grammar_levels(f"start: %json {json.dumps(chain(3_000))}") > MOST_LEVELS
    inner = "\n".join(f'  r{i}: "y"' for i in range(3_000))
    assert grammar_levels(f'start: r0 inner\n{rules}\nr3000: "y"\ninner: %lark {{\n  start: r0\n{inner}\n}}') > 3_000
    assert grammar_levels("start: " + " | ".join(f'"w{i}" r{i % 50}' for i in range(5_000))) == 1
