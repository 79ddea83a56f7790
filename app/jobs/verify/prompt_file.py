"""Reads the prompts to verify with, one per line or JSON lines, and renders them as texts that a model continues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.server.http.errors import ApiError
from app.server.templates.chat_template import TemplateRenderer
from core.values.errors import BadOption, BadRequest
from core.values.messages import LoadedModel

BUILT_IN = Path(__file__).with_name("prompts.jsonl")
MAX_BYTES = 16 << 20
MAX_PROMPTS = 10_000
_ROLES = ("system", "developer", "user", "assistant")


class BadPromptFile(BadOption):
    """A file of prompts that cannot be used."""


@dataclass(frozen=True, slots=True)
class VerifyPrompt:
    """A prompt as it stands in a file: ``text`` to be continued as it is, or ``messages`` for the chat template.

    ``line`` counts from 1; ``kind`` is any name for prompts of its sort, "" for none.
    """

    line: int
    text: str = ""
    messages: tuple[dict[str, str], ...] = ()
    kind: str = ""

    @property
    def summary(self) -> str:
        """The user's last message, or the text."""
        return self.messages[-1]["content"] if self.messages else self.text


def read_prompts(path: Path) -> tuple[VerifyPrompt, ...]:
    """Return the prompts of a file, blank lines left out; raises BadPromptFile with what is wrong and where.

    It is read as JSON lines where its name ends in .jsonl or its first prompt begins with a brace.
    """
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(_text(path).split("\n"), 1) if line.strip()]
    if not lines:
        raise BadPromptFile(f"{path} has no prompts: write one per line, or one JSON object per line.")
    if len(lines) > MAX_PROMPTS:
        raise BadPromptFile(f"{path} has {len(lines):,} prompts, more than {MAX_PROMPTS:,}. Choose some of them.")
    if path.suffix.lower() == ".jsonl" or lines[0][1].lstrip().startswith("{"):
        return tuple(_parsed(path, number, line) for number, line in lines)
    return tuple(VerifyPrompt(number, line) for number, line in lines)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadPromptFile(f"The prompts in {path} cannot be read: {error.strerror or error}.") from None
    except ValueError:
        raise BadPromptFile("The name of the file of prompts has a NUL character in it.") from None
    if len(data) > MAX_BYTES:
        raise BadPromptFile(f"{path} is larger than {MAX_BYTES >> 20} MiB. Choose some of its prompts.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadPromptFile(
            f"{path} is not UTF-8 text (byte {data[error.start]:#04x} in line {line}). "
            "Convert it first, for example with iconv."
        ) from None


def _parsed(path: Path, number: int, line: str) -> VerifyPrompt:
    def bad(reason: str) -> BadPromptFile:
        return BadPromptFile(f"Line {number} of {path} is no prompt: {reason}.")

    try:
        entry = json.loads(line)
    except ValueError as error:
        raise bad(f"it is not JSON ({error})") from None
    except RecursionError:
        raise bad("it is nested too deep") from None
    if not isinstance(entry, dict) or ("prompt" in entry) == ("messages" in entry):
        raise bad('it must be an object with either "prompt" or "messages"')
    kind = entry.get("kind", "")
    if not isinstance(kind, str):
        raise bad('"kind" must be text')
    if "prompt" in entry:
        if not isinstance(entry["prompt"], str) or not entry["prompt"]:
            raise bad('"prompt" must be text of at least one character')
        return VerifyPrompt(number, entry["prompt"], kind=kind)
    problem = _problem_of(entry["messages"])
    if problem:
        raise bad(problem)
    messages = tuple({"role": message["role"], "content": message["content"]} for message in entry["messages"])
    return VerifyPrompt(number, messages=messages, kind=kind)


def _problem_of(messages: Any) -> str | None:
    if not isinstance(messages, list) or not messages:
        return '"messages" must be a list of at least one message'
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            return 'each message must have a "role" and a "content", both text'
        if message.get("role") not in _ROLES:
            return f'the "role" of a message must be one of {", ".join(_ROLES)}'
    return None


def render(prompts: Sequence[VerifyPrompt], path: Path, model: LoadedModel) -> list[str]:
    """Return a text for each prompt of the file ``path``; raises BadPromptFile, naming the line.

    Messages go through the model's chat template. The built-in ones are continued as they are by a model without one.
    """
    if model.chat_template is None and path == BUILT_IN:
        return [prompt.summary for prompt in prompts]
    if any(prompt.messages for prompt in prompts):
        return asyncio.run(_render_all(prompts, path, model))
    return [prompt.text for prompt in prompts]


async def _render_all(prompts: Sequence[VerifyPrompt], path: Path, model: LoadedModel) -> list[str]:
    renderer = TemplateRenderer()
    try:
        return [await _render(renderer, prompt, path, model) for prompt in prompts]
    finally:
        await renderer.close()


async def _render(renderer: TemplateRenderer, prompt: VerifyPrompt, path: Path, model: LoadedModel) -> str:
    if not prompt.messages:
        return prompt.text
    if model.chat_template is None:
        raise BadPromptFile(
            f'Line {prompt.line} of {path} has messages, but this model has no chat template: give it a "prompt".'
        )
    try:
        return await renderer.render(model, {"messages": list(prompt.messages)})
    except (BadRequest, ApiError) as error:
        raise BadPromptFile(f"Line {prompt.line} of {path} cannot be rendered. {error.message}") from None
