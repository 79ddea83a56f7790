"""Chat templates: what models bring along works, and what is hostile ends in an error in time."""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from app.server.http.errors import RequestFailed
from app.server.templates.builtin_templates import BUILTIN_TEMPLATES
from app.server.templates.chat_template import TemplateFailed, TemplateRenderer
from app.server.templates.template_process import LENGTH, ChatTemplate, make_environment
from core.llama.library import L
from core.values.errors import BadRequest
from tests.support.scripted_engine import loaded

USER = {"role": "user", "content": "Hi"}
CHATML = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def render(source: str, messages=(USER,), **variables) -> str:
    template = ChatTemplate(make_environment(), source, 10_000)
    return template.render({"messages": list(messages), "add_generation_prompt": True, **variables})


def call(arguments) -> dict:
    function = {"name": "add", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}


@pytest.mark.parametrize("arguments", ['{"a":1,\n "b": [ ]}', '{"a": "cut he'])
def test_arguments_are_rendered_as_the_model_wrote_them(arguments):
    loop = "{% for m in messages %}{% for c in m.tool_calls %}"
    written = loop + "{{ c.function | tojson }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
    assert render(written, [USER, call(arguments)]) == f'{{"name": "add", "arguments": {arguments}}}{arguments}'
    keys = loop + "{% for key, value in c.function.arguments | items %}{{ key }}{% endfor %}{% endfor %}{% endfor %}"
    assert render(keys, [USER, call(arguments)]) == ("ab" if arguments.endswith("}") else "")


NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}"
)
CALLED = "{% for c in m.tool_calls %}"


def looped(inner: str) -> str:
    return f"{{% for m in messages %}}{inner}{{% endfor %}}"


@pytest.mark.parametrize(
    ("source", "messages", "text"),
    [
        (CHATML, [USER], "<|user|>Hi\n<|assistant|>"),
        (CHATML, [{"role": "developer", "content": "Be brief."}], "<|system|>Be brief.\n<|assistant|>"),
        # A template without a system turn gets it in the first words of the user.
        (NO_SYSTEM, [{"role": "system", "content": "Be brief."}, USER], "<user>Be brief.\n\nHi"),
        # Content that is null is empty where the template cannot read it; where it reads only parts, it gets parts.
        (
            looped(f"{{{{ m.content + '|' }}}}{CALLED}{{{{ c.function.name }}}}{{% endfor %}}"),
            [USER, call("{}")],
            "Hi||add",
        ),
        (looped("{% for p in m.content %}{{ p.text }}{% endfor %}"), [USER], "Hi"),
        # Arguments are an object where the template writes them as JSON, and text where it writes them as they are.
        (looped(CALLED + "{{ c.function.arguments | tojson }}{% endfor %}"), [call('{"a": 1}')], '{"a": 1}'),
        (looped(CALLED + "{{ '<' + c.function.arguments + '>' }}{% endfor %}"), [call({"a": "é"})], '<{"a": "é"}>'),
        # JSON is plain and HTML is not escaped.
        ("{{ {'b': '<é>', 'a': 1} | tojson }}", [USER], '{"b": "<é>", "a": 1}'),
        ("{{ {'a': 1} | tojson(indent=1) }}", [USER], '{\n "a": 1\n}'),
        # Tags of training templates are passed over.
        (looped("{% generation %}{{ m.content }}{% endgeneration %}{% break %}"), [USER], "Hi"),
        ("{{ strftime_now('%Y') }}", [USER], time.strftime("%Y")),
    ],
)
def test_a_template_gets_what_it_can_read(source, messages, text):
    assert render(source, messages, self=1, args=2, context=3) == text, "variables can have any name"


SYSTEM, SAID = {"role": "system", "content": " Be\nbrief. "}, {"role": "assistant", "content": "\n Yes? "}
TOOL, ASKED = {"role": "tool", "content": "7 "}, {"role": "user", "content": " What\tis it? \n"}
CHATS = (
    *([USER], [SYSTEM], [SYSTEM, ASKED], [ASKED, SAID], [USER, SAID, ASKED], [SYSTEM, ASKED, SAID, USER]),
    *([USER, SAID, TOOL], [USER, SYSTEM, ASKED], [SYSTEM, SAID, SYSTEM, USER]),
)


def by_llama_cpp(name: str, chat: list[dict[str, str]], with_answer: bool) -> str:
    messages = (L.llama_chat_message * len(chat))()
    for place, message in zip(messages, chat, strict=True):
        place.role, place.content = message["role"].encode(), message["content"].encode()
    buffer = ctypes.create_string_buffer(4_096)
    n_bytes = L.llama_chat_apply_template(name.encode(), messages, len(chat), with_answer, buffer, len(buffer))
    assert 0 <= n_bytes <= len(buffer)
    return buffer.raw[:n_bytes].decode()


def test_templates_with_a_name_are_those_of_llama_cpp_to_the_letter():
    n_names = L.llama_chat_builtin_templates(None, 0)
    names = (ctypes.c_char_p * n_names)()
    L.llama_chat_builtin_templates(names, n_names)
    assert [name.decode() for name in names] == list(BUILTIN_TEMPLATES)
    for name, source in BUILTIN_TEMPLATES.items():
        template = make_environment().from_string(source)
        for chat in CHATS:
            for with_answer in (True, False):
                written = template.render(messages=chat, add_generation_prompt=with_answer)
                assert written == by_llama_cpp(name, chat, with_answer), name
        assert "Hi" in render(source, [USER])


def run(source: str | None, seconds: float = 60.0, **variables) -> str:
    async def once() -> str:
        own = TemplateRenderer(seconds=seconds, max_chars=50_000)
        try:
            return await own.render(loaded("m.gguf", source), {"messages": [USER], **variables})
        finally:
            await own.close()

    return asyncio.run(once())


def test_a_chat_that_is_longer_than_may_be_written_is_a_prompt_that_is_too_long():
    with pytest.raises(RequestFailed, match="exceeds the available context size of 64") as caught:
        run("{{ messages[0].content }}", messages=[{"role": "user", "content": "a" * 60_000}])
    assert caught.value.sizes == (60_000 // 8, 64)
    assert caught.value.param == "messages"
    with pytest.raises(RequestFailed, match="exceeds the available context size of 64") as caught:
        run("{{ tools }}", tools=["a" * 60_000])
    assert caught.value.sizes == (50_000 // 8, 64), "it is not said how many more the template would have written"


def test_the_process_renders_with_the_texts_of_special_tokens():
    assert run("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ extra }}", extra=7) == "<s>Hi</s>7"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "seconds"),
        ("{% for i in range(99999) %}{{ 'a much longer text than one would think' }}{% endfor %}", "characters"),
        ("{{ 'x' * 60000 }}", "characters"),
        ("{{ 'x' * 10000000000 }}", "memory"),
        ("{{ 10 ** (10 ** 10) }}", "seconds"),
        ("{{ 'x'.center(99999999999) }}", "memory"),
        (
            "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
            "memory|seconds",
        ),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deep"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ self.__init__.__globals__ }}", "unsafe"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{% for %}", "Expected"),
        ("{% broken", r"unknown tag 'broken'\. Send"),
        ("{{ 1 // 0 }}", "line 1: ZeroDivisionError"),
        ("\n\n{{ 'a' | shout }}", "line 3: No filter named 'shout'"),
        ("\n{% if messages %}\n{{ nobody() }}{% endif %}", "line 3: 'nobody' is undefined"),
        ("", "empty prompt"),
    ],
)
def test_a_hostile_or_broken_template_ends_in_a_sentence(source, reason):
    with pytest.raises(TemplateFailed) as caught:
        run(source, seconds=0.6 if "seconds" in reason else 60.0)
    assert re.search(reason, caught.value.message)
    assert caught.value.answer.status == 500


@pytest.mark.parametrize(
    ("source", "variables", "reason"),
    [
        ("{% if messages %}{{ raise_exception('roles must alternate.') }}{% endif %}", {}, r"alternate\.$"),
        (CHATML, {"tools": [{"type": "function", "function": {"name": "f"}}]}, "no place"),
        (None, {}, "no chat template"),
    ],
)
def test_messages_that_a_template_does_not_take_are_a_bad_request(source, variables, reason):
    with pytest.raises(BadRequest, match=reason):
        run(source, **variables)


def test_the_next_prompt_is_rendered_after_a_time_out_and_after_a_caller_that_left():
    async def both() -> list[str]:
        renderer = TemplateRenderer(seconds=0.5)
        endless = loaded("a", "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
        good = loaded("b", CHATML)
        with pytest.raises(TemplateFailed):
            await renderer.render(endless, {"messages": [USER]})
        renderer.seconds = 60.0
        first = await renderer.render(good, {"messages": [USER]})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(renderer.render(endless, {"messages": [USER]}), 0.1)
        second = await renderer.render(good, {"messages": [USER | {"content": "You"}]})
        await renderer.close()
        return [first, second]

    assert asyncio.run(both()) == ["<|user|>Hi\n<|assistant|>", "<|user|>You\n<|assistant|>"]


def rendering_process() -> psutil.Process:
    (process,) = (one for one in psutil.Process().children() if "template_process" in " ".join(one.cmdline()))
    return process


def test_a_template_has_its_seconds_although_other_programs_keep_it_waiting():
    async def waited() -> str:
        renderer = TemplateRenderer(seconds=0.5)
        await renderer.start()
        process = rendering_process()
        process.suspend()  # as if others had all cores
        prompt = asyncio.ensure_future(renderer.render(loaded("b", CHATML), {"messages": [USER]}))
        await asyncio.wait((prompt,), timeout=2 * renderer.seconds)
        process.resume()
        text = await prompt
        await renderer.close()
        return text

    assert asyncio.run(waited()) == "<|user|>Hi\n<|assistant|>"


def test_a_process_that_died_is_replaced():
    async def again() -> str:
        renderer = TemplateRenderer()
        await renderer.start()
        process = rendering_process()
        process.kill()
        while psutil.pid_exists(process.pid):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)  # so that what has ended is known here too
        text = await renderer.render(loaded("b", CHATML), {"messages": [USER]})
        await renderer.close()
        return text

    assert asyncio.run(again()) == "<|user|>Hi\n<|assistant|>"


def test_half_a_surrogate_pair_in_a_tool_does_not_reach_the_engine():
    source = "{% for tool in tools or () %}{{ tool | tojson }}{% endfor %}"
    tools = json.loads('[{"type": "function", "function": {"name": "f", "description": "\\ud800"}}]')
    assert "?" in run(source, tools=tools)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarm signals")
def test_a_template_that_loops_ends_although_nobody_is_left_to_kill_it():
    source = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    body = json.dumps({"source": source, "max_chars": 100, "seconds": 60, "variables": {"messages": []}}).encode()
    program = (
        "import sys; import app.server.templates.template_process as t; t.LONGEST_RENDERING = 1;"
        "t.serve(sys.stdin.buffer, sys.stdout.buffer)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=LENGTH.pack(len(body)) + body,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGALRM
