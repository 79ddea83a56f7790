"""All chat templates of llama.cpp's sources: they are rendered, and replies in each one's own form are taken apart.

The replies are as the templates themselves write them. Where a template cannot, its replies are in ``WRITTEN``.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from jinja2 import TemplateError

from app.server.replies.constraints import ToolBinding
from app.server.replies.format_finder import contrasts, found_format
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, ReasoningText
from app.server.replies.reply_format import ReplyFormat
from app.server.replies.reply_parser import ReplyParser
from app.server.replies.tool_grammar import tool_grammar
from app.server.templates.template_process import ChatTemplate, make_environment
from core.sampling.grammar import GrammarCompiler
from core.values.request import Constraint

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "packaging"))
from first_start.chat_templates import templates_folder  # noqa: E402 - found below the path that is added above

USER, CONTENT, THOUGHT = "Ask?", "Yes: 2 < 3.\n\nÜber <b>all</b> [x] {y}", "First 1 < 2,\nthen [x]."
ARGUMENTS = [{"city": 'Köln "Süd"\n<b>', "days": 3, "deep": {"list": [1, "x"], "n": 2.5}}, {"city": "Rom", "days": 4}]
PROPERTIES = {
    "city": {"type": "string", "description": "Where."},
    "days": {"type": "integer", "description": "How long."},
    "deep": {"type": "object", "description": "More."},
}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "It helps.", "parameters": PARAMETERS}}
    for name in ("get_weather", "book")
]
CALLS = [
    {"id": f"abcdef00{i}", "type": "function", "function": {"name": tool["function"]["name"], "arguments": arguments}}
    for i, (tool, arguments) in enumerate(zip(TOOLS, ARGUMENTS, strict=True))
]
TURNS: list[dict] = [
    {"content": CONTENT},
    {"content": CONTENT, "reasoning_content": THOUGHT},
    {"content": CONTENT, "tool_calls": CALLS},
    {"reasoning_content": THOUGHT, "tool_calls": CALLS[:1]},
]
# Tokens that end a reply: the engine shows none of them.
ENDS = (
    "<EOS>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|return|>", "<|call|>",
    "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|assistant_end|>", "<turn|>", "<|tool_response>",
    "<|message_sep|>\n\n", "<seed:eos>", "[e~[", "<end_of_sentence>", "<end_of_turn>", "<|role_end|>", "</assistant>",
    "<|calls|>", "<sep>", "<|eot|>", "<|end_of_msg|>", "<SPECIAL_12>", "<｜hy_eos:opensource｜>", "<|end|>\n",
)  # fmt: skip


def version() -> str:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return next(line for line in dependencies if line.startswith("llama-cpp-python")).partition("==")[2]


FOLDER = templates_folder(version(), os.environ)
NAMES = sorted(path.stem for path in FOLDER.glob("*.jinja"))
needs_templates = pytest.mark.skipif(
    not NAMES, reason="the set-up had no network to fetch llama.cpp's chat templates: ./slipstream setup --dev"
)


# What a template has no place for: its model never learnt of it. The server refuses tools where they have none, and
# says beforehand that there are no calls.
MISSING: dict[str, tuple[str, ...]] = {
    "Apriel-1.6-15b-Thinker-fixed": ("reasoning",),  # that of earlier turns
    "HuggingFaceTB-SmolLM3-3B": ("tools", "call"),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("tools", "call"),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("tools",),
    "deepseek-ai-DeepSeek-V3.1": ("tools",),
    "google-gemma-2-2b-it": ("tools", "call", "result"),
    "llama-cpp-rwkv-world": ("tools", "call", "result"),
    "microsoft-Phi-3.5-mini-instruct": ("tools", "call", "result"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("system",),  # it stands only where the user spoke last
}


@dataclass(frozen=True)
class Real:
    """A template, and the form of reply that was found for it."""

    source: str
    template: ChatTemplate
    form: ReplyFormat

    def render(self, *messages: dict, **more) -> str:
        variables = {"bos_token": "<BOS>", "eos_token": "<EOS>", "tools": TOOLS, "messages": list(messages)}
        return self.template.render(variables | more)


@cache
def real(name: str) -> Real:
    source = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
    template = ChatTemplate(make_environment(), source, 1 << 20)
    special = {"bos_token": "<BOS>", "eos_token": "<EOS>"}
    prompts = template.render_each([special | variables for variables in contrasts()])
    return Real(source, template, found_format(source, prompts))


def written_reply(model: Real, said: dict) -> tuple[str, bool]:
    """Return the reply that the template writes for a turn of the assistant, and whether it begins in thoughts."""
    user, thinks = {"role": "user", "content": USER}, {"enable_thinking": True, "thinking": True}
    turn = model.render(user, {"role": "assistant", "content": "", **said}, add_generation_prompt=False, **thinks)
    turn = turn.rpartition(USER)[2]
    prompt = model.render(user, add_generation_prompt=True, **thinks)
    asked = prompt.rpartition(USER)[2]
    begins_in_thoughts = model.form.opens_thinking(prompt) and turn.startswith(asked)
    if not turn.startswith(asked) and model.form.thinking is not None:
        # The template leaves out, or closes, what the prompt has opened.
        asked = asked.rstrip().removesuffix(model.form.thinking.close.strip()).rstrip()
        asked = asked.removesuffix(model.form.thinking.open.strip())
        asked = asked if turn.startswith(asked) else asked.rstrip()
    assert turn.startswith(asked)
    reply = turn[len(asked) :]
    behind = max(reply.rfind(text) for text in ("days", CONTENT if "tool_calls" not in said else "", THOUGHT) if text)
    ends = [at for end in ENDS if (at := reply.find(end, max(behind, 0))) >= 0]
    return reply[: min(ends, default=len(reply))], begins_in_thoughts


@dataclass(frozen=True)
class Said:
    """A reply, whether it begins in thoughts, and what it says."""

    reply: str
    thinks: bool
    reasoning: str = ""
    content: str = ""
    calls: tuple[dict, ...] = ()


def spoken(reply: str, *, thinks: bool = False) -> Said:
    """Return a reply with those of the texts and calls above that are in it."""
    calls = tuple(call["function"] for call in CALLS if call["function"]["name"] in reply)
    return Said(reply, thinks, THOUGHT * (THOUGHT in reply), CONTENT * (CONTENT in reply), calls)


NAMED = [
    json.dumps({"name": call["function"]["name"], "arguments": call["function"]["arguments"]}, ensure_ascii=False)
    for call in CALLS
]
LISTED, NAME_KEY, TOOL_KEY = ", ".join(NAMED), '"name"', '"tool_name"'
PYTHON_CALL = "get_weather(city='Köln \"Süd\"\\n<b>', days=3, deep={'list': [1, 'x'], 'n': 2.5})"
PYTHONIC = f"{CONTENT}<|tool_call_start|>[{PYTHON_CALL}]"
# What models write whose templates show no call, or show calls and thoughts where no model could write them.
WRITTEN = {
    "Apriel-1.6-15b-Thinker-fixed": [
        spoken(f"{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{CONTENT}\n<tool_calls>[{LISTED}]</tool_calls>", thinks=True)
    ],
    "CohereForAI-c4ai-command-r-plus-tool_use": [
        spoken(f"{CONTENT}\nAction:\n```json\n[{LISTED.replace(NAME_KEY, TOOL_KEY)}\n]```")
    ],
    "NVIDIA-Nemotron-Nano-v2": [
        spoken(f"{THOUGHT}\n</think>\n\n{CONTENT}\n<TOOLCALL>[{LISTED}]</TOOLCALL>", thinks=True)
    ],
    "openai-gpt-oss-120b": [
        spoken(
            f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>commentary<|message|>{CONTENT}"
            "<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
            f"{json.dumps(ARGUMENTS[0])}"
        ),
        spoken(f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{CONTENT}"),
        spoken(f" to=functions.book<|channel|>commentary json<|message|>{json.dumps(ARGUMENTS[1])}"),
    ],
    "LFM2-8B-A1B": [spoken(f"{PYTHONIC}<|tool_call_end|>")],
    "LFM2.5-Instruct": [spoken(f"<think>\n{THOUGHT}</think>{PYTHONIC}<|tool_call_end|>")],
    "ibm-granite-granite-3.3-2B-Instruct": [
        spoken(f"<think>{THOUGHT}</think><response>{CONTENT}</response>"),
        spoken(f"<|tool_call|>[{LISTED}]"),
    ],
}


@cache
def replies(name: str) -> list[Said]:
    """Return replies in the form of a template's model."""
    model, found = real(name), list(WRITTEN.get(name, ()))
    if name not in WRITTEN:
        for said in TURNS:
            if "tool_calls" in said and not model.form.has_calls:
                continue
            try:
                reply, thinks = written_reply(model, said)
            except TemplateError:  # more than one call
                reply, thinks = written_reply(model, said | {"tool_calls": CALLS[:1]})
            found.append(spoken(reply, thinks=thinks))
    thinking = model.form.thinking
    if thinking is not None and not any(said.reasoning for said in found):
        found.append(spoken(f"{THOUGHT}\n{thinking.close}\n\n{CONTENT}", thinks=True))
    return found


def taken_apart(name: str, said: Said, pieces: list[str], *, is_cut: bool = False) -> tuple[str, str, list[tuple]]:
    """Return reasoning, content and calls: (name, arguments, whether they are whole)."""
    parser = ReplyParser(real(name).form, {tool["function"]["name"]: PARAMETERS for tool in TOOLS}, thinks=said.thinks)
    found = [piece for text in pieces for piece in parser.feed(text)] + parser.finish(is_cut=is_cut)
    calls: list[list] = []
    for piece in found:
        if isinstance(piece, CallBegun):
            calls.append([piece.name, "", False])
        elif isinstance(piece, CallArguments):
            calls[-1][1] += piece.text
        elif isinstance(piece, CallEnded):
            calls[-1][2] = True
    reasoning = "".join(piece.text for piece in found if isinstance(piece, ReasoningText))
    content = "".join(piece.text for piece in found if isinstance(piece, ContentText))
    return reasoning, content.strip(), [tuple(call) for call in calls]


def randomly_cut(text: str, rng: random.Random) -> list[str]:
    borders = [0, *sorted(rng.choices(range(len(text) + 1), k=6)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(borders)]


@needs_templates
def test_all_templates_of_the_sources_are_here():
    assert len(NAMES) == 70  # and a README


@needs_templates
@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_with_tools_is_rendered(name):
    model = real(name)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": USER},
        {"role": "assistant", "content": "", "reasoning_content": THOUGHT, "tool_calls": CALLS[:1]},
        {"role": "tool", "tool_call_id": CALLS[0]["id"], "name": "get_weather", "content": '{"sky": "clear"}'},
    ]
    if name == "google-gemma-2-2b-it":
        messages = messages[:2]  # its template refuses other roles
    prompt = model.render(*messages, add_generation_prompt=True, enable_thinking=True, thinking=True)
    parts = {"system": "Be brief.", "user": USER, "call": "get_weather", "result": "clear", "tools": '"Where."'}
    if model.template.reasoning_field:
        parts["reasoning"] = THOUGHT
    missing = {part for part, text in parts.items() if text.strip('"') not in prompt}
    assert missing == set(MISSING.get(name, ()))
    assert model.template.has_tools == model.form.has_calls == ("tools" not in missing)


@needs_templates
@pytest.mark.parametrize("name", NAMES)
def test_replies_in_a_models_own_form_are_taken_apart_wherever_they_are_cut(name):
    rng = random.Random(name)
    form = real(name).form
    said_at_all = replies(name)
    assert any(said.calls for said in said_at_all) == form.has_calls
    assert form.thinking is None or any(said.reasoning for said in said_at_all)
    for said in said_at_all:
        expected = said.reasoning, said.content
        for pieces in ([said.reply], list(said.reply), *(randomly_cut(said.reply, rng) for _ in range(3))):
            reasoning, content, calls = taken_apart(name, said, pieces)
            assert (reasoning, content) == expected
            assert [(name, json.loads(arguments)) for name, arguments, _ in calls] == [
                (call["name"], call["arguments"]) for call in said.calls
            ]
            assert all(is_whole for _, _, is_whole in calls)


@needs_templates
@pytest.mark.parametrize("name", NAMES)
def test_a_reply_that_ends_anywhere_shows_no_marker(name):
    for said in replies(name):
        reasoning, content, calls = taken_apart(name, said, [said.reply])
        for end in range(len(said.reply)):
            thought, told, called = taken_apart(name, said, [said.reply[:end]], is_cut=True)
            assert reasoning.startswith(thought), said.reply[:end]
            assert content.startswith(told), said.reply[:end]
            for (function, arguments, _), (begun, so_far, _) in zip(calls, called, strict=False):
                assert function == begun
                assert arguments.startswith(so_far), said.reply[:end]


class Bytes:
    """A vocabulary whose tokens are single bytes, and one that ends a reply."""

    end_tokens = frozenset([256])
    n_tokens = 257
    pieces = (*(bytes([byte]) for byte in range(256)), b"")

    def text(self, token: int) -> str:
        return "<END>"

    def tokenize(self, text: str, **options) -> list[int]:
        return list(text.encode())


@needs_templates
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WRITTEN and real(name).form.has_calls])
def test_calls_in_a_models_own_form_follow_the_grammar_of_calls(name):
    form = real(name).form
    reply, thinks = written_reply(real(name), {"reasoning_content": THOUGHT, "tool_calls": CALLS[1:]})
    for closed in ("<think></think>", "</think>", "<|START_THINKING|><|END_THINKING|>"):
        reply = reply.removeprefix(closed)  # as prompts without thoughts end
    for empty in ("<|open|>response<|sep|><|close|>response<|sep|>",):
        reply = reply.replace(empty, "")
    for dropped in form.dropped:
        reply = reply.removesuffix(dropped)
    if name == "LFM2.5-8B-A1B":
        reply = reply.replace("'", '"')  # it reads both
    tools = tuple((tool["function"]["name"], PARAMETERS) for tool in TOOLS)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    asked = Constraint("json_schema", json.dumps(schema), field="response_format")
    for must_call, answer in ((True, None), (False, None), (False, asked)):
        binding = ToolBinding(tools, must_call=must_call, at_most_one=False, answer=answer)
        thought = form.thought_after(form.thinking.open if thinks else "") if THOUGHT in reply else None
        matcher = GrammarCompiler(Bytes()).matcher(tool_grammar(form, binding, thought))
        told = list(reply.rstrip().encode())
        assert reply.encode()[: matcher.n_allowed(told)].decode() == reply.rstrip()
        other = list(reply.replace("book", "look").rstrip().encode())
        assert (not must_call and answer is None) or matcher.n_allowed(other) < len(other)
        if answer is not None and thought is None:
            assert matcher.n_allowed(list(b'{"n": 1}')) == 8
