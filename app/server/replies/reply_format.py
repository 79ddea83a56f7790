"""What a model's replies look like: the markers around its reasoning, its answer and its tool calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# Stands in a marker for text that differs from call to call: an id, a number, a type.
ANY = "\0"
# Where one tag ends and the next begins. Models leave out or add white space there.
_SEAM = re.compile(r"\s*\n\s*|(?<=>)\s*(?=<)|(?<=\])\s*(?=\[)")


NO_HEADER = r"(?!)"  # matches nothing


@dataclass(frozen=True, slots=True)
class Thinking:
    """The markers around what a model thinks before it answers; ``then`` begins what follows, if anything does."""

    open: str
    close: str
    then: str = ""


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """Each call is a JSON object with the function's name, or all of them are a list of such objects.

    ``name`` is "" where the name is the key of the arguments: ``{"f": {…}}``. ``between`` stands between two calls
    and ``close`` behind the last one, both as the template writes them. Without ``open``, calls are all of a reply.
    ``brackets`` begin and end a list.
    ``id`` is the key of a call's id, "" for none; it stands before the name or behind the arguments.
    """

    open: str
    close: str
    between: str = ""
    name: str = "name"
    arguments: str = "arguments"
    id: str = ""
    is_id_first: bool = False
    brackets: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class KeyedArguments:
    """Arguments one by one, each between markers: ``<parameter=city>Paris</parameter>``."""

    before_key: str
    after_key: str
    close: str


@dataclass(frozen=True, slots=True)
class TaggedCalls:
    """The function's name stands between ``open`` and ``after_name``; then come the arguments, then ``close``.

    Arguments are a JSON object, Gemma's own form of one, or keyed. ``between`` is what stands behind the arguments of
    a call and before the name of the next one.
    """

    open: str
    after_name: str
    close: str
    arguments: Literal["json", "gemma"] | KeyedArguments = "json"
    between: str = ""


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """A list of calls as Python writes them: ``[f(a=1), g(b='x')]``."""

    open: str
    close: str


@dataclass(frozen=True, slots=True)
class Channels:
    """A reply of several messages, each with a header that says for whom it is: gpt-oss, Functionary.

    ``start`` stands before a header, ``header_end`` behind it; a body ends with one of ``ends`` or the next ``start``.
    ``recipient``, ``thinking`` and ``answer`` are regular expressions over a header: the function that is called
    (first group), what is thought, and what is answered. What no header of these stands before is text as well.
    """

    start: str
    header_end: str
    ends: tuple[str, ...]
    recipient: str
    thinking: str = NO_HEADER
    answer: str = ""


CallForm = JsonCalls | TaggedCalls | PythonCalls


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """A model's form of replies.

    ``answer`` holds the markers around the answer, where it has any. ``dropped`` are markers that mean nothing to the
    reader. ``channels`` replaces all others.
    """

    thinking: Thinking | None = None
    answer: tuple[str, str] = ("", "")
    calls: CallForm | None = None
    dropped: tuple[str, ...] = ()
    channels: Channels | None = None

    @property
    def has_thoughts(self) -> bool:
        """True where what the model thinks comes apart from its answer."""
        return self.thinking is not None or (self.channels is not None and self.channels.thinking != NO_HEADER)

    @property
    def has_calls(self) -> bool:
        """True where calls of tools come apart from the answer."""
        return self.calls is not None or self.channels is not None

    @property
    def markers(self) -> tuple[str, ...]:
        """All texts in which special tokens may stand that the parser must see."""
        found = [*self.answer, *self.dropped]
        if self.thinking is not None:
            found += [self.thinking.open, self.thinking.close]
        if self.channels is not None:
            found += [
                self.channels.start,
                self.channels.header_end,
                *self.channels.ends,
                "<|channel|>",
                "<|constrain|>",
            ]
        if self.calls is not None:
            found += [self.calls.open, self.calls.close]
        if isinstance(self.calls, TaggedCalls):
            found += [self.calls.after_name, self.calls.between]
            if isinstance(self.calls.arguments, KeyedArguments):
                keyed = self.calls.arguments
                found += [keyed.before_key, keyed.after_key, keyed.close]
            elif self.calls.arguments == "gemma":
                found.append(GEMMA_QUOTE)
        return tuple(dict.fromkeys(part for text in found for part in text.split(ANY) if part.strip()))

    @property
    def is_plain(self) -> bool:
        """True where a reply without calls is text and nothing else."""
        return self.thinking is None and self.channels is None and not (self.dropped or any(self.answer))

    def opens_thinking(self, prompt: str) -> bool:
        """True where the prompt ends inside the thinking, so that the reply begins there."""
        if self.thinking is None or not self.thinking.open:
            return False
        return prompt.rstrip().endswith(self.thinking.open.strip())

    def thought_after(self, prompt: str, *, goes_on: bool = False) -> tuple[str, str] | None:
        """Return the markers around what may be thought before the answer to a prompt, as in Constraint.

        ``goes_on``: the prompt ends inside thoughts that have begun.
        """
        thinking = self.thinking
        if thinking is None or prompt.rstrip().endswith(thinking.close.strip()):
            return None
        end = thinking.close.strip() + thinking.then
        if goes_on or self.opens_thinking(prompt):
            return "", end
        return (thinking.open, end) if thinking.open else None


GEMMA_QUOTE = '<|"|>'


def tags(marker: str) -> list[str]:
    """Split a marker where one tag ends and the next begins."""
    return [part for part in _SEAM.split(marker.strip()) if part]
