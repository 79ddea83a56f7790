"""Forms of replies that templates do not show, or show in a way that cannot be told from its text.

Facts: the model cards, and ``common/parsers`` and ``common/chat-diff-analyzer.cpp`` in llama.cpp.
"""

from __future__ import annotations

from dataclasses import replace

from app.server.replies.reply_format import (
    ANY,
    Channels,
    JsonCalls,
    KeyedArguments,
    PythonCalls,
    ReplyFormat,
    TaggedCalls,
    Thinking,
)

_THINK = Thinking("<think>", "</think>")
# The form of models that have none of their own and are told to call tools: Hermes, Qwen 2.5 and many after them.
HERMES = JsonCalls("<tool_call>\n", "\n</tool_call>", "\n</tool_call>\n<tool_call>\n")
_GPT_OSS = ReplyFormat(
    thinking=Thinking("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant"),
    channels=Channels(
        start="<|start|>assistant",
        header_end="<|message|>",
        ends=("<|end|>", "<|call|>", "<|return|>"),
        recipient=r"to=functions\.([^\s<]+)",
        thinking="analysis",
    ),
)
_MUSE = ReplyFormat(
    thinking=Thinking(" to=self<|message|>", "<|eom|>", "<|start|>assistant"),
    calls=TaggedCalls(
        '<atem:function_calls>\n<atem:invoke name="',
        '">\n',
        "</atem:invoke>\n</atem:function_calls>",
        KeyedArguments('<atem:parameter name="', '">', "</atem:parameter>\n"),
    ),
    channels=Channels(
        start="<|start|>assistant",
        header_end="<|message|>",
        ends=("<|eom|>", "<|eot|>"),
        recipient=r"to=(?!self|user)(\S+)",
        thinking="to=self",
    ),
)
_FUNCTIONARY = ReplyFormat(
    channels=Channels(start=">>>", header_end="\n", ends=(), recipient=r"^(?!all$)([^\s<>]+)$", answer="^all$")
)
_KIMI_K3 = ReplyFormat(
    thinking=Thinking("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    answer=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    calls=TaggedCalls(
        '<|open|>tools<|sep|><|open|>call tool="',
        f'" index="{ANY}"<|sep|>',
        "<|close|>call<|sep|><|close|>tools<|sep|>",
        KeyedArguments('<|open|>argument key="', f'" type="{ANY}"<|sep|>', "<|close|>argument<|sep|>"),
        '<|close|>call<|sep|><|open|>call tool="',
    ),
    dropped=("<|close|>message<|sep|>",),
)
_NS = "]<]minimax[>["
_MINIMAX_M3 = TaggedCalls(
    f'{_NS}<tool_call>\n{_NS}<invoke name="',
    '">',
    f"{_NS}</invoke>\n{_NS}</tool_call>",
    KeyedArguments(f"{_NS}<", ">", f"{_NS}</{ANY}>"),
    f'{_NS}</invoke>\n{_NS}<invoke name="',
)

# Texts in a template's source, and the form of the replies of a model with such a template.
_WHOLE = (
    (("<|channel|>", "<|message|>"), _GPT_OSS),
    (("<atem:function_calls>", "<|eom|>"), _MUSE),
    ((">>>all",), _FUNCTIONARY),
    (("<|open|>", "<|close|>", "<|end_of_msg|>"), _KIMI_K3),
)


def corrected(found: ReplyFormat, source: str) -> ReplyFormat:
    """Return the form of reply of the template with this ``source``, of which its renderings show ``found``."""
    for marks, form in _WHOLE:
        if all(mark in source for mark in marks):
            return form
    if "<|tool_call>call:" in source:  # Gemma 4
        return replace(found, thinking=Thinking("<|channel>thought\n", "<channel|>"))
    if _NS in source:  # MiniMax M3
        return replace(found, calls=_MINIMAX_M3)
    if "<|think|>" in source and "<|tool_call:begin|>" in source:  # Solar Open
        begin = "<|begin|>assistant"
        thinking = Thinking("<|think|>", "<|end|>", begin)
        return replace(found, thinking=thinking, answer=("<|content|>", "<|end|>"), dropped=(begin,))
    if "write your response between <response></response>" in source:  # Granite 3.3
        calls = JsonCalls("<|tool_call|>", "", ", ", brackets=("[", "]"))
        return ReplyFormat(_THINK, ("<response>", "</response>"), calls)
    if "Here are my reasoning steps:" in source and found.thinking is not None:  # Apriel 1.6
        return replace(found, thinking=replace(found.thinking, open="Here are my reasoning steps:"))
    if found.calls is None:
        is_lfm = "<|tool_list_start|>" in source or "List of tools: [" in source
        found = replace(found, calls=PythonCalls("<|tool_call_start|>", "<|tool_call_end|>") if is_lfm else HERMES)
    elif not found.calls.open.strip():  # Llama 3
        found = replace(found, dropped=("<|python_tag|>",))
    # Older templates cut thoughts away instead of writing them: QwQ, DeepSeek R1, Nemotron Nano 2.
    if found.thinking is None and "</think>" in source:
        found = replace(found, thinking=_THINK)
    return found
