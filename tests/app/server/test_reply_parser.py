"""What the parser makes of replies that are cut, malformed or unusual. test_real_templates.py has usual ones."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.server.replies.families import HERMES
from app.server.replies.format_finder import found_format
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, ReasoningText
from app.server.replies.reply_format import JsonCalls, KeyedArguments, PythonCalls, ReplyFormat, TaggedCalls, Thinking
from app.server.replies.reply_parser import ReplyParser

THINKING = Thinking("<think>", "</think>")
QWEN = ReplyFormat(THINKING, calls=HERMES)
CODER = ReplyFormat(
    calls=TaggedCalls(
        "<tool_call>\n<function=",
        ">\n",
        "</function>\n</tool_call>",
        KeyedArguments("<parameter=", ">\n", "\n</parameter>\n"),
    )
)
LLAMA = ReplyFormat(calls=JsonCalls("", "", arguments="parameters"), dropped=("<|python_tag|>",))
FUNCTIONARY = found_format("{{ '>>>all' }}", [None] * 6)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
ADD = ("add", '{"a": 1}')
TOOLS = {
    "add up 'now'": {},
    "add": {"properties": {"a": {"type": "integer"}, "s": {"type": "string"}, "o": {"type": "object"}}},
}


def parsed(pieces, form=QWEN, *, is_cut: bool = False, thinks: bool = False) -> list:
    """Content as text, reasoning in brackets, calls as (name, arguments); a call without end has "…" behind it."""
    parser = ReplyParser(form, TOOLS, thinks=thinks)
    found: list = []
    for piece in [part for text in pieces for part in parser.feed(text)] + parser.finish(is_cut=is_cut):
        last = found[-1] if found else None
        if isinstance(piece, CallBegun):
            found.append((piece.name, "", "…"))
        elif isinstance(piece, CallArguments):
            found[-1] = (last[0], last[1] + piece.text, "…")
        elif isinstance(piece, CallEnded):
            found[-1] = last[:2]
        elif isinstance(piece, ReasoningText):
            if isinstance(last, list):
                last[0] += piece.text
            else:
                found.append([piece.text])
        elif isinstance(last, str):
            found[-1] += piece.text
        else:
            assert isinstance(piece, ContentText)
            found.append(piece.text)
    return found


@pytest.mark.parametrize(
    ("form", "text", "parts"),
    [
        (QWEN, "Hello there.", ["Hello there."]),
        (QWEN, CALL, [ADD]),
        (QWEN, CALL.replace("add", "add up 'now'"), [("add up 'now'", '{"a": 1}')]),
        (QWEN, CALL.replace("add", "add up"), [CALL.replace("add", "add up")]),
        (QWEN, f"I add.\n\n{CALL}", ["I add.", ADD]),
        (QWEN, f"{CALL}\n{CALL}\n", [ADD, ADD]),
        (QWEN, f"{CALL} Done.", [ADD, "Done."]),
        (QWEN, f"<think>\nHm.\n\n</think>\n\nI <think> so.\n{CALL}", [["Hm."], "I <think> so.", ADD]),
        (QWEN, f"<think></think>{CALL}<think>More.</think>{CALL}", [ADD, ["More."], ADD]),
        (QWEN, "</think>\n\nHi", ["Hi"]),
        (QWEN, "<think>for ever", [["for ever"]]),
        (QWEN, '<tool_call>{"name": "f"}</tool_call>', [("f", "{}")]),
        (QWEN, '<tool_call>{"name": "f", "arguments": null}</tool_call>', [("f", "{}")]),
        (QWEN, '<tool_call>{"name": "f", "arguments": "{\\"x\\": \\"\\ud83d\\ude00\\"}"}', [("f", '{"x": "😀"}')]),
        (QWEN, '<tool_call>{"arguments": {"a": 1}, "id": "7", "name": "add"}</tool_call>', [ADD]),
        (QWEN, '<tool_call>{"type": "function", "function": {"name": "add", "parameters": {"a": 1}}}', [ADD]),
        (QWEN, '<tool_call>[{"name": "f"}, {"name": "g"}]</tool_call>', [("f", "{}"), ("g", "{}")]),
        (QWEN, '<tool_call>{"name": "add", "arguments": {"a": 1}}', [ADD]),
        # What is no call is text.
        (QWEN, "a <tool_call>{broken</tool_call> b", ["a <tool_call>{broken</tool_call> b"]),
        (QWEN, 'x\n<tool_call>{"name": "f", "arg', ['x\n<tool_call>{"name": "f", "arg']),
        (QWEN, '<tool_call>{"name": 3}</tool_call>', ['<tool_call>{"name": 3}</tool_call>']),
        (QWEN, '<tool_call>{"name": "f", "arguments": [1]}', ['<tool_call>{"name": "f", "arguments": [1]}']),
        (QWEN, "<tool_call></tool_call>", ["<tool_call></tool_call>"]),
        (QWEN, "a < b <tool", ["a < b <tool"]),
        (QWEN, "  \n", []),
        (QWEN, "text \n ", ["text \n "]),
        (QWEN, "</tool_call>", ["</tool_call>"]),
        # Malformed arguments are given as they are: OpenAI's may be malformed too.
        (QWEN, '<tool_call>{"name": "add", "arguments": {"a": [1}}} x', [("add", '{"a": [1}', "…"), "}} x"]),
        # A function without its first marker, as Qwen3-Coder writes it; only where it is one of the tools.
        (CODER, "<function=add>\n<parameter=s>\nx\n</parameter>\n</function>", [("add", '{"s": "x"}')]),
        (CODER, "Write <function=other>.", ["Write <function=other>."]),
        (
            CODER,
            '<tool_call>\n<function=add>\n<parameter=a>\n3\n</parameter>\n<parameter=s>\n\n"x\ny"\n\n</parameter>\n'
            "<parameter=o>\n{'k': [True]}\n</parameter>\n<parameter=z>\nfree\n</parameter>\n</function>\n</tool_call>",
            [("add", '{"a": 3, "s": "\\n\\"x\\ny\\"\\n", "o": {"k": [true]}, "z": "free"}')],
        ),
        (CODER, "<tool_call>\n<function=add>\n</function>\n</tool_call>", [("add", "{}")]),
        (CODER, "<tool_call>\n<function=add>\n<parameter=s>\nx", [("add", '{"s": "x"}')]),
        (LLAMA, '{"name": "add", "parameters": {"a": 1}}', [ADD]),
        (LLAMA, '<|python_tag|>{"name": "add", "parameters": {"a": 1}}; {"name": "add"}', [ADD, ("add", "{}")]),
        (LLAMA, '{"name": "Otto", "parameters": {"a": 1}}', ['{"name": "Otto", "parameters": {"a": 1}}']),
        (LLAMA, '{"city": "Rome"}', ['{"city": "Rome"}']),
        (LLAMA, "A {x}", ["A {x}"]),
        (FUNCTIONARY, 'all\nI add.>>>add\n{"a": 1}', ["I add.", ADD]),
        (FUNCTIONARY, "all\n>>> print(1)\n1\n>>> 2", [">>> print(1)\n1\n>>> 2"]),
    ],
)  # fmt: skip
def test_a_reply_is_taken_apart_however_it_is_cut(form, text, parts):
    for pieces in ([text], text, [text[i : i + 3] for i in range(0, len(text), 3)]):
        assert parsed(pieces, form) == parts


@given(
    st.lists(
        st.sampled_from([CALL, "<tool_call>", "</tool_call>", "<think>", "</think>", "<", "tool", " ", "\n", "a", "{}"])
    ),
    st.data(),
)
def test_the_cut_never_changes_what_is_found(pieces, data):
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    borders = [0, *cuts, len(text)]
    assert parsed([text[a:b] for a, b in itertools.pairwise(borders)]) == parsed([text])


GEMMA = ReplyFormat(calls=TaggedCalls("<|tool_call>call:", "", "<tool_call|>", "gemma"))
PYTHON = ReplyFormat(calls=PythonCalls("<|tool_call_start|>", "<|tool_call_end|>"))
MINIMAX = found_format("]<]minimax[>[", [None] * 6)
GPT_OSS = found_format("<|channel|><|message|>", [None] * 6)
JUNK = ['{"name": "add", "arguments": ', '"', "\\", "\\u12", "'", " ", "\n", "add", "a", "ü", *"{}[],:()="]


@pytest.mark.parametrize("form", [QWEN, CODER, LLAMA, FUNCTIONARY, GEMMA, PYTHON, MINIMAX, GPT_OSS])
@settings(max_examples=50)
@given(data=st.data())
def test_nothing_that_a_model_writes_is_a_crash(form, data):
    """And all ways to cut it are one."""
    text = "".join(data.draw(st.lists(st.sampled_from([*form.markers, "to=functions.add", *JUNK]), max_size=30)))
    is_cut = data.draw(st.booleans())
    assert parsed(text, form, is_cut=is_cut) == parsed([text], form, is_cut=is_cut)


@pytest.mark.parametrize("form", [QWEN, CODER, GEMMA, PYTHON, MINIMAX, LLAMA])
def test_what_is_nested_without_end_is_no_crash(form):
    for opening in ("{", "[", '{"a":', "{a:", "]<]minimax[>[<a>"):
        for start in (
            '<tool_call>{"x": ',
            '<tool_call>{"name": "add", "arguments": ',
            '{"name": "add", "parameters": ',
            '{"parameters": ',
            "<tool_call>\n<function=add>\n<parameter=o>\n",
            "<|tool_call>call:add",
            "<|tool_call_start|>[add(o=",
            ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="add">]<]minimax[>[<o>',
        ):
            parsed([start, opening * 3_000, "]<]minimax[>[</o>\n</parameter>"], form)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a < b", ["a < b"]),
        ("I add.\n<tool_c", ["I add.\n"]),
        ("I add.\n<tool_call>", ["I add."]),
        ('I add.\n<tool_call>\n{"na', ["I add."]),
        ('<tool_call>\n{"name": "ad', []),
        ('<tool_call>\n{"name": "add"', [("add", "", "…")]),
        ('<tool_call>\n{"name": "add"}', [("add", "{}")]),
        ('<tool_call>\n{"name": "add", "arguments": ', [("add", "", "…")]),
        ('<tool_call>\n{"name": "add", "arguments": {"a": "x <', [("add", '{"a": "x <', "…")]),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}', [("add", '{"a": 1}', "…")]),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool', [ADD]),
        ('<tool_call>{"name": "f", "arguments": "{\\"x\\": \\"y\\u00', [("f", '{"x": "y', "…")]),
        (f"{CALL}\n<tool_call>", [ADD]),
        ("<think>Hm.\n</thi", [["Hm."]]),
    ],
)
def test_a_call_that_is_cut_is_given_as_far_as_it_came_and_never_as_text(text, parts):
    assert parsed([text], is_cut=True) == parts
    assert parsed(text, is_cut=True) == parts


def test_text_and_arguments_come_as_soon_as_they_are_written():
    parser = ReplyParser(QWEN, TOOLS)
    for text, told in (("One <tool", "One"), ("box", " <toolbox"), (" two", " two")):
        assert parser.feed(text) == [ContentText(told)]
    (begun, first) = parser.feed('<tool_call>\n{"name": "add", "arguments": {"a": "On')
    assert (type(begun), begun.name, first) == (CallBegun, "add", CallArguments('{"a": "On'))
    assert parser.feed("ce}") == [CallArguments("ce}")]
    assert parser.feed('"}}') == [CallArguments('"}'), CallEnded()]
    parser = ReplyParser(CODER, TOOLS)
    parser.feed("<tool_call>\n<function=add>\n<parameter=s>\n")
    assert parser.feed('Once "upon')[-1] == CallArguments('Once \\"upon')
    assert parser.feed(" a time\n")[-1] == CallArguments(" a time")
    assert parser.feed("</parameter>\n</function>") == [CallArguments('"}'), CallEnded()]


def test_a_call_of_a_tool_ends_the_thoughts_and_is_text_where_there_are_no_tools():
    form = ReplyFormat(THINKING, calls=CODER.calls)
    call = "<tool_call>\n<function={}>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
    for text in (f"Hm.\n{call.format('add')}", [f"Hm.\n{call.format('add')}"]):
        assert parsed(text, form, thinks=True) == [["Hm."], ADD]
    thought = f"A {call.format('other')} B"
    assert parsed(f"{thought}</think>Hi", form, thinks=True) == [[thought], "Hi"]
    assert parsed("Hm. <tool_call>", form, thinks=True) == [["Hm. <tool_call>"]]
    assert parsed("Hm. <tool_call>", form, thinks=True, is_cut=True) == [["Hm."]]
    assert parsed("Hm.\n</think>\n\nHi", thinks=True) == [["Hm."], "Hi"]
    without_tools = ReplyParser(QWEN)
    assert without_tools.feed(CALL) + without_tools.finish() == [ContentText(CALL)]
    ids = {piece.id for piece in ReplyParser(QWEN, TOOLS).feed(CALL + CALL) if isinstance(piece, CallBegun)}
    assert len(ids) == 2


def test_a_huge_call_takes_time_in_proportion():
    text = json.dumps({"name": "add", "arguments": {"s": "x" * 100_000}})
    ((name, arguments),) = parsed(["<tool_call>", *(text[i : i + 4] for i in range(0, len(text), 4))])
    assert (name, len(json.loads(arguments)["s"])) == ("add", 100_000)
