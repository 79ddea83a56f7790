"""Turns messages into a prompt with a model's own chat template, in a process of its own under limits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from app.server.http.errors import SERVER, ApiError, ErrorAnswer, RequestFailed
from app.server.replies.format_finder import contrasts, found_format
from app.server.replies.reply_format import ReplyFormat
from core.values.errors import BadRequest, PromptTooLong
from core.values.messages import Failure
from models.formatting.sentence import Sentence

SECONDS = 3.0  # of computing: other programs may keep a template waiting for longer than it takes
_LONGEST_WAIT = 20.0
MAX_CHARS = 16 * 1024 * 1024
MOST_CHARS_OF_A_TOKEN = 8  # on average; English has four
MAX_FORMATS = 64  # kept at once, each of a template: a list of models asks for all of theirs
LENGTH = struct.Struct(">I")
SCRIPT = Path(__file__).with_name("template_process.py")


# Stands for the end of a message that is continued: templates strip white space, and write on behind it.
_END = "\ue0d0continued here\ue0d0"


class Turn(Enum):
    """What stands at the end of a prompt."""

    NEW = "new"  # the beginning of the assistant's turn
    CONTINUED = "content"  # the assistant's last message, which goes on
    THINKING = "reasoning_content"  # its thoughts, which go on, or its content where the template does not show them
    NONE = "none"  # the messages, and nothing behind them


def _marked(messages: Sequence[Mapping[str, Any]], turn: Turn) -> list[Mapping[str, Any]]:
    *before, last = messages
    ends = {Turn.THINKING, Turn.CONTINUED} if turn is Turn.THINKING else {turn}
    return [*before, {**last, **{end.value: f"{last.get(end.value) or ''}{_END}" for end in ends}}]


class Templated(Protocol):
    """A model as templates know it; fields as in ``LoadedModel``."""

    @property
    def chat_template(self) -> str | None:
        """The jinja source, or None."""

    @property
    def bos(self) -> str:
        """The text of the first token."""

    @property
    def eos(self) -> str:
        """The text of the last token."""

    @property
    def n_ctx(self) -> int:
        """The length of the context."""


class TemplateFailed(ApiError):
    """The model's chat template did not give a prompt."""

    def __init__(self, reason: str) -> None:
        message = Sentence(
            "The chat template of this model cannot be used: {reason}. Send a text prompt to /v1/completions.",
            reason=reason,
        )
        super().__init__(ErrorAnswer(500, SERVER, "chat_template_failed"), message)
        self.reason = reason


class TemplateRenderer:
    """Renders prompts one after the other; a template that exceeds its time loses its process.

    ``seconds`` are those that it may compute.
    """

    def __init__(
        self, defaults: Mapping[str, Any] | None = None, *, seconds: float = SECONDS, max_chars: int = MAX_CHARS
    ) -> None:
        """``defaults`` are variables that templates read where a request does not say."""
        self._defaults = defaults or {}
        self.seconds, self._max_chars = seconds, max_chars
        self._process: Process | None = None
        self._lock = asyncio.Lock()
        self._formats: dict[str, ReplyFormat] = {}  # by template

    async def start(self) -> None:
        """Start the process ahead of the first prompt."""
        async with self._lock:
            await self._running()

    async def render(self, model: Templated, variables: Mapping[str, Any], turn: Turn = Turn.NEW) -> str:
        """Return the prompt for ``variables`` (messages, tools and what else the template may read).

        ``turn`` says what stands at its end. Raises BadRequest when the template refuses the messages, RequestFailed
        when they are longer than any context, TemplateFailed when it is unusable.
        """
        if model.chat_template is None:
            raise BadRequest(
                "This model has no chat template, so it cannot chat: send a text prompt to /v1/completions.",
                param="messages",
            )
        special: dict[str, Any] = {"bos_token": model.bos, "eos_token": model.eos}
        special["add_generation_prompt"] = turn is Turn.NEW
        if turn in (Turn.CONTINUED, Turn.THINKING):
            special["messages"] = _marked(variables["messages"], turn)
        request = {
            "source": model.chat_template,
            "variables": {**self._defaults, **variables, **special},
        }
        # Where a template is slow, its process would run out of time or memory before it has written too much.
        if (n_chars := _n_chars(variables.get("messages", ()))) > self._max_chars:
            raise _too_long(n_chars // MOST_CHARS_OF_A_TOKEN, model.n_ctx)
        answer = await self._ask(request)
        if "error" in answer:
            if answer["kind"] == "messages":
                message = Sentence("The chat template refuses these messages: {error}.", error=answer["error"])
                raise BadRequest(message, param="messages")
            if answer["kind"] == "length":
                raise _too_long(self._max_chars // MOST_CHARS_OF_A_TOKEN, model.n_ctx)
            raise TemplateFailed(answer["error"])
        if variables.get("tools") and not answer["has_tools"]:
            message = Sentence(
                "This model does not support tools: its template has no place for them. Choose a model that does, or "
                "send none."
            )
            raise BadRequest(message, param="tools")
        prompt: str = answer["text"].encode("utf-8", "replace").decode()
        if turn in (Turn.CONTINUED, Turn.THINKING):
            prompt, mark, _ = prompt.partition(_END)
            if not mark:
                message = Sentence(
                    "The chat template of this model does not show the last message, so it cannot be continued."
                )
                raise BadRequest(message, param="messages")
        if not prompt:
            raise TemplateFailed(Sentence("it gave an empty prompt"))
        return prompt

    async def reply_format(self, model: Templated) -> ReplyFormat:
        """Return what the model's replies look like, as its template shows it. Raises TemplateFailed."""
        source = model.chat_template
        if source is None:
            return ReplyFormat()
        if source not in self._formats:
            special = {"bos_token": model.bos, "eos_token": model.eos}
            several = [special | variables for variables in contrasts()]
            answer = await self._ask({"source": source, "several": several})
            if "error" in answer:
                raise TemplateFailed(answer["error"])
            if len(self._formats) >= MAX_FORMATS:
                self._formats.clear()
            self._formats[source] = found_format(source, answer["texts"])
        return self._formats[source]

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        frame = json.dumps({**request, "max_chars": self._max_chars, "seconds": self.seconds}).encode()
        async with self._lock:
            process = await self._running()
            answer: dict[str, Any] | None = None
            try:
                answer = await asyncio.wait_for(_exchange(process, frame), _LONGEST_WAIT)
            except TimeoutError:
                raise _took_longer_than(_LONGEST_WAIT) from None
            except (asyncio.IncompleteReadError, ConnectionError):
                with suppress(TimeoutError):  # what has only closed its output is killed below
                    await asyncio.wait_for(process.wait(), 1.0)
                if process.returncode == -signal.SIGPROF:
                    raise _took_longer_than(self.seconds) from None
                raise TemplateFailed(Sentence("it ended the process that renders it")) from None
            finally:
                # The late answer to a call that has gone would be taken for the next one's.
                if answer is None:
                    await asyncio.shield(self.close())
            if answer.get("kind") == "length" and len(frame) < self._max_chars // 2:
                answer["kind"] = "template"  # it writes far more than it reads, whatever the messages are
            return answer

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", str(SCRIPT)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                start_new_session=True,
                # What long prompts took goes back to the system, as in the server (glibc alone knows this).
                env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)},
            )
        return self._process


def _n_chars(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return how many characters the texts of the messages have."""
    contents = [message.get("content") or "" for message in messages]
    parts = [part.get("text") or "" for parts in contents if not isinstance(parts, str) for part in parts]
    return sum(len(text) for text in (*contents, *parts) if isinstance(text, str))


def _too_long(n_least: int, n_ctx: int) -> RequestFailed:
    return RequestFailed(Failure.too_long(PromptTooLong(max(n_least, n_ctx + 1), n_ctx, at_least=True)))


def _took_longer_than(seconds: float) -> TemplateFailed:
    return TemplateFailed(Sentence("it took more than {seconds:g} seconds", seconds=seconds))


class _SourceAlone(NamedTuple):
    chat_template: str
    bos: str = ""
    eos: str = ""
    n_ctx: int = 0


async def template_problem(source: str, variables: Mapping[str, Any]) -> str | None:
    """Return why no chat can be written with a template; None where one can. ``variables`` are those it may read."""
    renderer = TemplateRenderer(variables)
    try:
        await renderer.render(_SourceAlone(source), {"messages": [{"role": "user", "content": "Hello"}], "tools": None})
    except TemplateFailed as error:
        return error.reason
    except BadRequest:
        pass  # it refuses this chat, and may take others
    finally:
        await renderer.close()
    return None


async def _exchange(process: Process, request: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(LENGTH.pack(len(request)) + request)
    await process.stdin.drain()
    (n_bytes,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    answer: dict[str, Any] = json.loads(await process.stdout.readexactly(n_bytes))
    return answer
