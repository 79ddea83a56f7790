"""Tool calls in a model's text: found whole or in pieces, and text that is no call stays text."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.tool_calls import ToolCall, ToolCallParser, parse_call

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def parsed(pieces) -> list[str | tuple[str, dict]]:
    """Parts in order; text that follows text is one."""
    parser = ToolCallParser()
    parts = [part for piece in pieces for part in parser.feed(piece)] + parser.finish()
    whole: list = []
    for part in parts:
        if isinstance(part, ToolCall):
            whole.append((part.name, json.loads(part.arguments)))
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
