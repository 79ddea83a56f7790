"""Chat templates that llama.cpp has built in, by the names that llama-server's ``--chat-template`` takes, as jinja.

They give the prompts that ``llm_chat_apply_template`` gives (llama.cpp's src/llama-chat.cpp): without tools, without
thoughts, and without the first token, which is added to every prompt of a model that wants one.
"""

from __future__ import annotations

_ROLE, _TEXT, _TRIMMED = "{{ m.role }}", "{{ m.content }}", "{{ m.content|trim }}"


def _turns(turn: str, answer: str = "", begin: str = "") -> str:
    """Return a template that writes ``begin``, a ``turn`` for each message ``m``, and the beginning of the answer."""
    opened = f"{{% if add_generation_prompt %}}{answer}{{% endif %}}" if answer else ""
    return f"{begin}{{% for m in messages %}}{turn}{{% endfor %}}{opened}"


def _by_role(*, others: str = "", **turns: str) -> str:
    """Return the turn for each role; ``others`` is that of the roles that are not named."""
    named = [f"if m.role == '{role}' %}}{turn}{{% " for role, turn in turns.items()]
    return "{% " + "el".join(named) + f"else %}}{others}{{% endif %}}"


def _mistral(before: str, after: str, answer: str) -> str:
    """Return a template of Mistral's first versions: ``before`` and ``after`` stand around its markers."""
    return "{% set turn = namespace(is_open=false) %}" + _turns(
        f"{{% if not turn.is_open %}}{before}[INST]{after}{{% set turn.is_open = true %}}{{% endif %}}"
        + _by_role(
            system=f"{_TEXT}\n\n",
            user=f"{_TEXT}{before}[/INST]",
            others=f"{after}{answer}</s>{{% set turn.is_open = false %}}",
        )
    )


def _mistral_7(space: str) -> str:
    return _turns(
        _by_role(
            system=f"[SYSTEM_PROMPT]{space}{_TEXT}[/SYSTEM_PROMPT]",
            user=f"[INST]{space}{_TEXT}[/INST]",
            others=f"{space}{_TEXT}</s>",
        )
    )


def _llama_2(text: str = _TEXT, *, has_system: bool = True, begin: str = "") -> str:
    """Return a template of Llama 2; ``begin`` stands before each turn but the first."""
    return "[INST] {% set turn = namespace(is_open=true) %}" + _turns(
        f"{{% if not turn.is_open %}}{begin}[INST] {{% set turn.is_open = true %}}{{% endif %}}"
        + _by_role(
            system=f"<<SYS>>\n{text}\n<</SYS>>\n\n" if has_system else f"{text}\n",
            user=f"{text} [/INST]",
            others=f"{text}</s>{{% set turn.is_open = false %}}",
        )
    )


def _system_first(text: str, turn: str, answer: str = "") -> str:
    """Return a template that puts what the system says before the ``text`` that comes first in the user's ``turn``."""
    is_due = "turn.system and m.role != 'assistant'"
    told = f"{{% if {is_due} %}}{{{{ turn.system }}}}\n\n{{% set turn.system = '' %}}{{% endif %}}"
    kept = f"{{% set turn.system = turn.system ~ ({text.strip('{ }')}) %}}"
    turn = turn.replace(text, told + text, 1)
    return "{% set turn = namespace(system='') %}" + _turns(_by_role(system=kept, others=turn), answer)


def _granite() -> str:
    turn = f"<|start_of_role|>{_ROLE}<|end_of_role|>{_TEXT}<|end_of_text|>\n"
    return _turns(turn, "<|start_of_role|>assistant<|end_of_role|>")


def _exaone(*, has_tools: bool) -> str:
    turns = {
        "system": f"[|system|]{_TRIMMED}[|endofturn|]\n",
        "user": f"[|user|]{_TRIMMED}\n",
        "assistant": f"[|assistant|]{_TRIMMED}[|endofturn|]\n",
    }
    tools = {"tool": f"[|tool|]{_TRIMMED}[|endofturn|]\n"} if has_tools else {}
    return _turns(_by_role(**turns, **tools), "[|assistant|]")


def _only_first(text: str) -> str:
    return f"{{% if loop.first %}}{text}{{% endif %}}"


def _vicuna(system: str) -> str:
    return _turns(_by_role(system=system, user=f"USER: {_TEXT}\n", assistant=f"ASSISTANT: {_TEXT}</s>\n"), "ASSISTANT:")


def _command_r(role: str) -> str:
    return f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>{_TRIMMED}<|END_OF_TURN_TOKEN|>"


_LOUD_ROLE = "<role>{{ 'HUMAN' if m.role == 'user' else m.role|upper }}</role>"
_DEEPSEEK_END = "<｜end▁of▁sentence｜>"
_GIGACHAT_FUNCTIONS = "available functions<|role_sep|>[]<|message_sep|>"
_PANGU = {"system": "系统", "user": "用户", "assistant": "助手", "tool": "工具", "function": "方法"}
_NO_SYSTEM = "{% if not messages or messages[0].role != 'system' %}"

BUILTIN_TEMPLATES: dict[str, str] = {
    "bailing": _turns(f"{_LOUD_ROLE}{_TEXT}", "<role>ASSISTANT</role>"),
    "bailing-think": _turns(f"{_LOUD_ROLE}{_TEXT}", "<role>ASSISTANT</role><think>"),
    "bailing2": _turns(
        f"{_LOUD_ROLE}{_TEXT}<|role_end|>",
        "<role>ASSISTANT</role>",
        f"{_NO_SYSTEM}<role>SYSTEM</role>detailed thinking off<|role_end|>{{% endif %}}",
    ),
    "chatglm3": _turns(f"<|{_ROLE}|>\n {_TEXT}", "<|assistant|>", "[gMASK]sop"),
    "chatglm4": _turns(f"<|{_ROLE}|>\n{_TEXT}", "<|assistant|>\n", "[gMASK]<sop>"),
    "chatml": _turns(f"<|im_start|>{_ROLE}\n{_TEXT}<|im_end|>\n", "<|im_start|>assistant\n"),
    "command-r": _turns(
        _by_role(system=_command_r("SYSTEM"), user=_command_r("USER"), assistant=_command_r("CHATBOT")),
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    ),
    "deepseek": _turns(
        _by_role(system=_TEXT, user=f"### Instruction:\n{_TEXT}\n", assistant=f"### Response:\n{_TEXT}\n<|EOT|>\n"),
        "### Response:\n",
    ),
    "deepseek-ocr": _turns(_TEXT),
    "deepseek2": _turns(
        _by_role(system=f"{_TEXT}\n\n", user=f"User: {_TEXT}\n\n", assistant=f"Assistant: {_TEXT}{_DEEPSEEK_END}"),
        "Assistant:",
    ),
    "deepseek3": _turns(
        _by_role(system=f"{_TEXT}\n\n", user=f"<｜User｜>{_TEXT}", assistant=f"<｜Assistant｜>{_TEXT}{_DEEPSEEK_END}"),
        "<｜Assistant｜>",
    ),
    "exaone-moe": _turns(
        "{% if m.role in ('system', 'user', 'assistant', 'tool') %}"
        f"<|{_ROLE}|>\n{_TRIMMED}<|endofturn|>\n{{% endif %}}",
        "<|assistant|>\n",
    ),
    "exaone3": _exaone(has_tools=False),
    "exaone4": _exaone(has_tools=True),
    "falcon3": _turns(f"<|{_ROLE}|>\n{_TEXT}\n", "<|assistant|>\n"),
    "gemma": _system_first(
        _TRIMMED,
        f"<start_of_turn>{{{{ 'model' if m.role == 'assistant' else m.role }}}}\n{_TRIMMED}<end_of_turn>\n",
        "<start_of_turn>model\n",
    ),
    "gigachat": _turns(
        _by_role(
            system=_only_first(f"{_TEXT}<|message_sep|>"),
            user=f"user<|role_sep|>{_TEXT}<|message_sep|>{_GIGACHAT_FUNCTIONS}",
            assistant=f"assistant<|role_sep|>{_TEXT}<|message_sep|>",
        ),
        "assistant<|role_sep|>",
        "<s>",
    ),
    "glmedge": _turns(f"<|{_ROLE}|>\n{_TEXT}", "<|assistant|>"),
    "gpt-oss": _turns(
        f"<|start|>{_ROLE}<|message|>{_TEXT}{{{{ '<|return|>' if m.role == 'assistant' else '<|end|>' }}}}",
        "<|start|>assistant",
    ),
    **dict.fromkeys(("granite", "granite-4.0", "granite-4.1"), _granite()),
    "grok-2": _turns(
        _by_role(
            system=f"System: {_TRIMMED}<|separator|>\n\n",
            user=f"Human: {_TRIMMED}<|separator|>\n\n",
            assistant=f"Assistant: {_TEXT}<|separator|>\n\n",
        ),
        "Assistant:",
    ),
    "hunyuan-dense": _turns(
        _by_role(
            system=_only_first(f"{_TEXT}<｜hy_place▁holder▁no▁3｜>"),
            assistant=f"<｜hy_Assistant｜>{_TEXT}<｜hy_place▁holder▁no▁2｜>",
            user=f"<｜hy_User｜>{_TEXT}<｜hy_Assistant｜>",
        )
    ),
    "hunyuan-moe": _turns(
        _by_role(
            system=f"<|startoftext|>{_TEXT}<|extra_4|>",
            assistant=f"{_TEXT}<|eos|>",
            others=f"<|startoftext|>{_TEXT}<|extra_0|>",
        )
    ),
    "hunyuan-vl": _turns(
        _by_role(
            system=_only_first(f"{_TEXT}<｜hy_place▁holder▁no▁3｜>"),
            user=f"{_TEXT}<｜hy_User｜>",
            assistant=f"{_TEXT}<｜hy_Assistant｜>",
        ),
        begin="<｜hy_begin▁of▁sentence｜>",
    ),
    "kimi-k2": _turns(
        _by_role(
            system="<|im_system|>system<|im_middle|>",
            user="<|im_user|>user<|im_middle|>",
            assistant="<|im_assistant|>assistant<|im_middle|>",
            tool="<|im_system|>tool<|im_middle|>",
        )
        + f"{_TEXT}<|im_end|>",
        "<|im_assistant|>assistant<|im_middle|>",
    ),
    "llama2": _llama_2(has_system=False),
    "llama2-sys": _llama_2(),
    "llama2-sys-bos": _llama_2(begin="<s>"),
    "llama2-sys-strip": _llama_2(_TRIMMED),
    "llama3": _turns(
        f"<|start_header_id|>{_ROLE}<|end_header_id|>\n\n{_TRIMMED}<|eot_id|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "llama4": _turns(
        f"<|header_start|>{_ROLE}<|header_end|>\n\n{_TRIMMED}<|eot|>", "<|header_start|>assistant<|header_end|>\n\n"
    ),
    "megrez": _turns(f"<|role_start|>{_ROLE}<|role_end|>{_TEXT}<|turn_end|>", "<|role_start|>assistant<|role_end|>"),
    "minicpm": _turns(_by_role(user=f"<用户>{_TRIMMED}<AI>", others=_TRIMMED)),
    "mistral-v1": _mistral(" ", " ", _TEXT),
    "mistral-v3": _mistral("", " ", _TRIMMED),
    "mistral-v3-tekken": _mistral("", "", _TEXT),
    "mistral-v7": _mistral_7(" "),
    "mistral-v7-tekken": _mistral_7(""),
    "monarch": _turns(f"{{% if not loop.first %}}<s>{{% endif %}}{_ROLE}\n{_TEXT}</s>\n", "<s>assistant\n"),
    "openchat": _turns(
        _by_role(
            system=f"{_TEXT}<|end_of_turn|>",
            others=f"GPT4 Correct {{{{ m.role[:1]|upper ~ m.role[1:] }}}}: {_TEXT}<|end_of_turn|>",
        ),
        "GPT4 Correct Assistant:",
    ),
    "orion": _system_first(_TEXT, _by_role(user=f"Human: {_TEXT}\n\nAssistant: </s>", others=f"{_TEXT}</s>")),
    "pangu-embedded": _turns(
        _by_role(**{role: f"[unused9]{word}：{_TEXT}[unused10]" for role, word in _PANGU.items()}),
        f"[unused9]{_PANGU['assistant']}：",
        f"{_NO_SYSTEM}[unused9]{_PANGU['system']}：[unused10]{{% endif %}}",
    ),
    "phi3": _turns(f"<|{_ROLE}|>\n{_TEXT}<|end|>\n", "<|assistant|>\n"),
    "phi4": _turns(f"<|im_start|>{_ROLE}<|im_sep|>{_TEXT}<|im_end|>", "<|im_start|>assistant<|im_sep|>"),
    "rwkv-world": _turns(
        _by_role(
            system=f"System: {_TRIMMED}\n\n",
            user=f"User: {_TRIMMED}\n\n{{% if loop.last %}}Assistant:{{% endif %}}",
            assistant=f"Assistant: {_TRIMMED}\n\n",
        )
    ),
    "seed_oss": _turns(
        f"<seed:bos>{_ROLE}\n{_by_role(assistant=_TRIMMED, others=_TEXT)}<seed:eos>", "<seed:bos>assistant\n"
    ),
    "smolvlm": _turns(
        _by_role(
            system=f"{_TEXT}\n\n",
            user=f"User: {_TEXT}<end_of_utterance>\n",
            others=f"Assistant: {_TEXT}<end_of_utterance>\n",
        ),
        "Assistant:",
        "<|im_start|>",
    ),
    "solar-open": _turns(f"<|begin|>{_ROLE}<|content|>{_TEXT}<|end|>", "<|begin|>assistant"),
    "vicuna": _vicuna(f"{_TEXT}\n\n"),
    "vicuna-orca": _vicuna(f"SYSTEM: {_TEXT}\n"),
    "yandex": _turns(
        _by_role(user=f" Пользователь: {_TEXT}\n\n", assistant=f" Ассистент: {_TEXT}\n\n"), " Ассистент:[SEP]"
    ),
    "zephyr": _turns(f"<|{_ROLE}|>\n{_TEXT}<|endoftext|>\n", "<|assistant|>\n"),
}
