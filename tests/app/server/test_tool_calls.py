"""Tool calls in a model's text: found whole or in pieces, and text that is no call stays text."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.replies.tool_calls import ToolCall, ToolCallParser, parse_call

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def parsed(pieces, *, is_cut: bool = False) -> list[str | tuple[str, object]]:
    """Parts in order; text that follows text is one. The arguments of a call that was cut are text."""
    parser = ToolCallParser()
    parts = [part for piece in pieces for part in parser.feed(piece)] + parser.finish(is_cut=is_cut)
    whole: list = []
    for part in parts:
        if isinstance(part, ToolCall):
            whole.append((part.name, part.arguments if is_cut else json.loads(part.arguments)))
        elif whole and isinstance(whole[-1], str):
            whole[-1] += part
        else:
            whole.append(part)
    return whole


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hello there.", ["Hello there."]),
        (CALL, [("add", {"a": 1})]),
        (f"I add.\n\n{CALL}", ["I add.", ("add", {"a": 1})]),
        (f"{CALL}\n{CALL}\n", [("add", {"a": 1}), ("add", {"a": 1})]),
        (f"{CALL} Done.", [("add", {"a": 1}), " Done."]),
        ('<tool_call>{"name": "f"}</tool_call>', [("f", {})]),
        ('<tool_call>{"name": "f", "arguments": "{\\"x\\": 2}"}</tool_call>', [("f", {"x": 2})]),
        ("a <tool_call>{broken</tool_call> b", ["a <tool_call>{broken</tool_call> b"]),
        ('x\n<tool_call>{"name": "f", "arg', ['x\n<tool_call>{"name": "f", "arg']),
        ("a < b <tool", ["a < b <tool"]),
        ("  \n", []),
        ("text \n ", ["text \n "]),
        ("</tool_call>", ["</tool_call>"]),
    ],
)
def test_text_and_calls_come_in_order_however_the_text_is_cut(text, parts):
    assert parsed([text]) == parts
    assert parsed(text) == parts
    assert parsed([text[i : i + 3] for i in range(0, len(text), 3)]) == parts


@given(st.lists(st.sampled_from([CALL, "<tool_call>", "</tool_call>", "<", "tool", " ", "\n", "a", "{}"])), st.data())
def test_the_cut_never_changes_what_is_found(pieces, data):
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    borders = [0, *cuts, len(text)]
    assert parsed([text[a:b] for a, b in itertools.pairwise(borders)]) == parsed([text])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a < b", ["a < b"]),
        ("I add.\n<tool_c", ["I add.\n"]),
        ("I add.\n<tool_call>", ["I add."]),
        ('I add.\n<tool_call>\n{"na', ["I add."]),
        ('<tool_call>\n{"name": "ad', []),
        ('<tool_call>\n{"name": "add"', [("add", "")]),
        ('<tool_call>\n{"name": "add"}', [("add", "{}")]),
        ('<tool_call>\n{"name": "add", "arguments": ', [("add", "")]),
        ('<tool_call>\n{"name": "add", "arguments": {"a": "x <', [("add", '{"a": "x <')]),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}', [("add", '{"a": 1}')]),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool', [("add", '{"a": 1}')]),
        ('<tool_call>{"name": "f", "arguments": "{\\"x\\": \\"y\\u00', [("f", '{"x": "y')]),
        ('<tool_call>{"name": 3, "arguments": {}}', []),
        ("<tool_call>{broken", []),
        (f"{CALL}\n<tool_call>", [("add", '{"a": 1}')]),
    ],
)
def test_a_call_that_is_cut_is_given_as_far_as_it_came_and_never_as_text(text, parts):
    assert parsed([text], is_cut=True) == parts
    assert parsed(text, is_cut=True) == parts


@given(st.integers(0, len(f"I add. {CALL}")))
def test_no_cut_shows_a_marker(n):
    text = f"I add. {CALL}"[:n]
    shown = "".join(part for part in parsed(text, is_cut=True) if isinstance(part, str))
    assert "I add. ".startswith(shown)


def test_text_is_given_out_as_soon_as_it_cannot_begin_a_marker():
    parser = ToolCallParser()
    assert parser.feed("One <tool") == ["One"]
    assert parser.feed("box") == [" <toolbox"]
    assert parser.feed(" two") == [" two"]


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", "3", '{"name": ""}', '{"name": 3}', '{"name": "f", "arguments": [1]}']
)
def test_what_is_no_call_is_none(body):
    assert parse_call(body) is None


def test_ids_differ():
    assert parse_call('{"name": "f"}').id != parse_call('{"name": "f"}').id
