"""Reads tool calls: each form of them as JSON, piece by piece."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from app.server.replies.json_text import (
    is_text_by,
    quoted,
    stream_gemma,
    stream_json,
    stream_python,
    stream_string,
    value_as_json,
)
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded
from app.server.replies.reply_format import ANY, CallForm, JsonCalls, KeyedArguments, PythonCalls, TaggedCalls, tags
from app.server.replies.text_source import Reading, TextOver, TextSource

# Parameters by name of the function, as JSON schemas.
Tools = Mapping[str, Mapping[str, Any]]
# A function's name has 128 characters at most (chat_body.Function), a key as many.
_LONGEST_NAME = 256
# The most characters of a call that are read before its function is known.
_LONGEST_CALL = 1_000_000
# Keys of a call that some models use instead of those of their template.
_NAME_KEYS, _ARGUMENTS_KEYS = ("name", "tool_name"), ("arguments", "parameters")
# A call may lack its first marker, as Qwen3-Coder writes them. Then it begins with a tag of so many characters or more.
_SHORTEST_START = 6
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


class _NoCall(Exception):
    """The text began like a call and is none."""


class CallReader:
    """Reads the calls of one reply from its ``source`` and gives their pieces.

    ``name`` is that of a call that has not begun yet, ``is_calling`` True from its beginning to its end. While a call
    ``is_undecided``, what was read and not taken may be text. With ``needs_known`` only tools are called.
    """

    def __init__(
        self,
        source: TextSource,
        form: CallForm | None,
        tools: Tools | None,
        give: Callable[[CallBegun | CallArguments | CallEnded], None],
    ) -> None:
        self._source, self._form, self._tools, self._give = source, form, tools, give
        self.name = ""
        self.is_calling = self.has_called = self.is_undecided = self.needs_known = self.is_cut = False

    @property
    def starts(self) -> list[str]:
        """The markers that begin a call."""
        form = self._form
        if self._tools is None or form is None or not form.open.strip():
            return []
        first, *others = [tag.partition(ANY)[0] for tag in tags(form.open)]
        return [first, *(tag for tag in others if len(tag) >= _SHORTEST_START and isinstance(form, TaggedCalls))]

    @property
    def ends(self) -> list[str]:
        """The markers that may stand behind a call, or between two."""
        form = self._form
        if not self.has_called or form is None:
            return []
        between = [] if isinstance(form, PythonCalls) else tags(form.between)
        return [*tags(form.close), *(tag for tag in between if ANY not in tag and tag not in self.starts)]

    def begin(self) -> None:
        """Give the beginning of the call whose name was read."""
        self._give(CallBegun(f"call_{os.urandom(12).hex()}", self.name))
        self.name, self.is_calling = "", True
        self._source.take()

    def _argue(self, text: str) -> None:
        self._give(CallArguments(text))

    def _end(self) -> None:
        self._give(CallEnded())
        self.is_calling, self.has_called = False, True
        self._source.take()

    def read(self, marker: str) -> Reading[bool]:
        """Read what the marker that was just read begins. Return False where that is no call, but text."""
        form, source = self._form, self._source
        source.kept = source.at - len(marker)
        self.is_undecided, is_call = True, True
        try:
            if isinstance(form, JsonCalls):
                yield from self._json_calls(form)
            elif isinstance(form, TaggedCalls):
                yield from self._tagged_call(form, marker)
            elif isinstance(form, PythonCalls):
                yield from self._python_calls()
        except _NoCall:
            self.name = ""
            if self.is_calling:
                self.is_calling, self.has_called = False, True
            else:
                # Nothing was taken since the call began, or the last one of a list ended.
                source.at = source.kept
                if source.text.startswith(marker, source.at):
                    source.at += len(marker)
                    is_call = False
            source.take()
        self.is_undecided = False
        return is_call

    def read_arguments(self) -> Reading[None]:
        """Read the arguments of the call whose name is known, an object."""
        if (yield from self._source.skip_space()) != "{":
            self.name = ""
            return
        self.begin()
        if (yield from stream_json(self._source, self._argue)):
            self._end()
        self.is_calling = False

    def _check(self, name: str, *, is_known: bool = False) -> str:
        """Return a function's name, any that is a tool's; raises _NoCall where it cannot be one.

        One that is no tool's cannot be one either if ``is_known``.
        """
        tools = self._tools or ()
        if name in tools:
            return name
        name = name.strip()
        if name not in tools and (is_known or self.needs_known or not re.fullmatch(r"[^\s<>{}\[\]\"']+", name)):
            raise _NoCall
        return name

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def read_bare(self, dropped: tuple[str, ...]) -> Reading[None]:
        """Read calls that are all of a reply, without any marker: JSON with the name of a tool.

        What is ``dropped`` may stand before.
        """
        source = self._source
        assert isinstance(self._form, JsonCalls)
        if (yield from self._leading(dropped)) not in ("{", "[") or self._tools is None:
            return
        self.is_undecided = True
        try:
            yield from self._json_calls(self._form, is_known=True)
        except _NoCall:
            self.name = ""
            if not self.is_calling:
                source.at = source.kept
            self.is_calling = False
        self.is_undecided = False

    def _leading(self, dropped: tuple[str, ...]) -> Reading[str]:
        """Skip what may stand before a call without a marker; return the next character."""
        source = self._source
        source.take()
        try:
            while (yield from source.skip_space()) == "<" and (yield from source.literal(*dropped or (ANY,))):
                source.take()
        except TextOver:
            source.at = source.kept
            raise
        found = yield from source.peek()
        if found not in "{[":
            source.at = source.kept
        return found

    def _json_calls(self, form: JsonCalls, *, is_known: bool = False) -> Reading[None]:
        source = self._source
        for tag in tags(form.open)[1:]:
            yield from source.skip_space()
            yield from source.literal(tag)
        n_calls = 0
        while True:
            try:
                mark = yield from source.skip_space("[,;" if n_calls else "[")
            except TextOver:
                if n_calls:
                    source.take()
                raise
            if mark != "{":
                break
            yield from self._json_call(form, is_known=is_known)
            n_calls += 1
        if not n_calls:
            raise _NoCall
        if mark == "]":
            source.at += 1
        source.take()

    def _json_call(self, form: JsonCalls, *, is_known: bool) -> Reading[None]:
        """Read one object, key by key: its arguments are given as they come if the name stands before them."""
        source, begun = self._source, False
        source.at += 1
        early = ""  # arguments that stand before the name
        depth = 0  # of objects around the name, as in {"function": {"name": …}}
        while True:
            mark = yield from source.skip_space(",")
            if mark == "}":
                source.at += 1
                if depth:
                    depth -= 1
                    continue
                break
            key = yield from self._json_key()
            value = yield from source.skip_space()
            if not form.name and not begun and value == "{":
                self.name = self._check(key, is_known=is_known)
                begun = yield from self._json_arguments(value)
            elif key in (form.name, *_NAME_KEYS) and not self.name and not begun and value == '"':
                source.at += 1
                name = yield from self._whole_string()
                self.name = self._check(name, is_known=is_known)
                if early:
                    self._give_early(early)
                    begun = True
            elif key in (form.arguments, *_ARGUMENTS_KEYS) and not begun:
                if self.name:
                    begun = yield from self._json_arguments(value)
                else:
                    early = yield from self._whole_value()
            elif key == "function" and value == "{" and not begun:
                source.at += 1
                depth += 1
            else:
                yield from self._whole_value()
        if not begun:
            if not self.name:
                raise _NoCall
            self.begin()
            self._argue("{}")
        self._end()

    def _json_key(self) -> Reading[str]:
        source = self._source
        if not (yield from source.literal('"')):
            raise _NoCall
        key = yield from self._whole_string()
        yield from source.skip_space()
        if not (yield from source.literal(":")):
            raise _NoCall
        return key

    def _json_arguments(self, first: str) -> Reading[bool]:
        """Begin the call and pass on its arguments: an object, or a string that says one."""
        source = self._source
        if first == "{":
            self.begin()
            if not (yield from stream_json(source, self._argue)):
                raise _NoCall
        elif first == '"':
            source.at += 1
            if (yield from source.skip_space()) not in '{"':
                raise _NoCall
            self.begin()
            if not (yield from stream_string(source, self._argue)):
                raise _NoCall
        elif (yield from source.literal("null")):
            self.begin()
            self._argue("{}")
        else:
            raise _NoCall
        return True

    def _give_early(self, arguments: str) -> None:
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise _NoCall from error
        if isinstance(value, str):
            arguments = value
        elif not isinstance(value, dict):
            raise _NoCall
        self.begin()
        self._argue(arguments)

    def _whole_string(self) -> Reading[str]:
        """Read a string whose opening quote was read, without taking it."""
        source, end = self._source, self._source.at
        while True:
            match = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL).match(source.text, source.at)
            if match is not None:
                source.at = match.end()
                try:
                    return str(json.loads(f'"{match[0]}', strict=False))
                except ValueError as error:
                    raise _NoCall from error
            if len(source.text) - end > 64 * _LONGEST_NAME:
                raise _NoCall
            yield from source.more()

    def _whole_value(self) -> Reading[str]:
        """Read a JSON value and return it as written, without taking it."""
        source, parts = self._source, []
        if source.text[source.at] not in "{[":
            text, end = yield from source.until([",", "}", "]"], _LONGEST_CALL)
            source.at -= len(end)
            return text
        source.holds = True
        try:

            def give(text: str) -> None:
                parts.append(text)
                if len(source.text) - source.kept > _LONGEST_CALL:
                    raise _NoCall

            if not (yield from stream_json(source, give)):
                raise _NoCall
        finally:
            source.holds = False
        return "".join(parts)

    # -- between tags -------------------------------------------------------------------------------------------------

    def _tagged_call(self, form: TaggedCalls, marker: str) -> Reading[None]:
        source = self._source
        opening = tags(form.open)
        at = next(i for i, tag in enumerate(opening) if tag.partition(ANY)[0] == marker)
        yield from self._pattern_rest(opening[at])
        for tag in opening[at + 1 :]:
            yield from source.skip_space()
            yield from self._pattern(tag)
        name_end = form.after_name.strip().partition(ANY)[0]
        keyed = form.arguments if isinstance(form.arguments, KeyedArguments) else None
        closers = tags(form.close)
        ends = {name_end, "\n", "{" if keyed is None else keyed.before_key, *closers[:1]} - {""}
        name, end = yield from source.until(ends, _LONGEST_NAME)
        self.name = self._check(name, is_known=at > 0 and not self.has_called)
        source.at -= len(end)
        yield from source.skip_space()
        if name_end:
            yield from self._pattern(form.after_name.strip())
        is_whole = yield from (self._keyed(form, keyed) if keyed is not None else self._object(form))
        if not is_whole:
            raise _NoCall
        if self.is_calling:
            self._end()

    def _pattern(self, tag: str) -> Reading[str]:
        """Read a tag; return what stands in the place of ANY."""
        first, _, _ = tag.partition(ANY)
        if not (yield from self._source.literal(first.strip())):
            raise _NoCall
        return (yield from self._pattern_rest(tag))

    def _pattern_rest(self, tag: str) -> Reading[str]:
        """Read what follows the beginning of a tag."""
        _, is_any, last = tag.partition(ANY)
        if not is_any:
            return ""
        text, end = yield from self._source.until([last.strip()], _LONGEST_NAME)
        if not end:
            raise _NoCall
        return text

    def _object(self, form: TaggedCalls) -> Reading[bool]:
        """Pass on arguments that are one object."""
        source = self._source
        mark = yield from source.skip_space()
        if mark == '"' and form.arguments == "json":
            return (yield from self._json_arguments(mark))
        if mark != "{":
            # Some leave out the braces of no arguments.
            if not (yield from source.literal(*tags(form.close)[:1] or ("\0",))):
                raise _NoCall
            self.begin()
            self._argue("{}")
            return True
        self.begin()
        return (yield from (stream_gemma if form.arguments == "gemma" else stream_json)(source, self._argue))

    def _keyed(self, form: TaggedCalls, keyed: KeyedArguments) -> Reading[bool]:
        """Pass on arguments that stand each between markers as one JSON object."""
        source, closers = self._source, tags(form.close)
        before_key = keyed.before_key.strip()
        schema = (self._tools or {}).get(self.name, {})
        self.begin()
        self._argue("{")
        separator = ""
        try:
            while True:
                yield from source.skip_space()
                found = yield from source.literal(before_key, *closers)
                if found != before_key:
                    break
                key, is_end = yield from source.until([keyed.after_key.strip().partition(ANY)[0]], _LONGEST_NAME)
                if not is_end:
                    return False
                key = key.strip()
                kind = yield from self._pattern_rest(keyed.after_key.strip())
                self._argue(f"{separator}{json.dumps(key, ensure_ascii=False)}: ")
                separator = ", "
                yield from self._keyed_value(keyed, key, is_text_by(schema, key, kind))
        except TextOver:
            if not self.is_cut:
                self._argue("}")
                self._end()
            raise
        self._argue("}")
        if not found:
            self._end()
        return True

    def _keyed_value(self, keyed: KeyedArguments, key: str, is_text: bool | None) -> Reading[None]:
        """Pass on one value; a text as it comes, all else when it is whole."""
        source = self._source
        close = keyed.close.replace(ANY, key)
        if keyed.after_key.endswith("\n") and (yield from source.peek()) == "\n":
            source.at += 1
        source.take()
        value: list[str] = []
        held = ""

        def give(text: str) -> None:
            # A newline before the close marker belongs to the marker.
            nonlocal held
            text = held + text
            held = "\n" if text.endswith("\n") and close.startswith("\n") else ""
            text = text[: len(text) - len(held)]
            if text:
                self._argue(quoted(text)) if is_text else value.append(text)

        if is_text:
            self._argue('"')
        try:
            # As XML protects characters: MiniCPM.
            if (yield from source.peek()) == "<" and (yield from source.literal(_CDATA)):
                source.take()
                yield from source.stream_until([_CDATA_END], give)
            yield from source.stream_until([close.strip()], give)
        except TextOver:
            if not self.is_cut:
                give(source.rest)
                self._argue('"' if is_text else value_as_json("".join(value), is_text, keyed))
            raise
        source.take()
        self._argue('"' if is_text else value_as_json("".join(value), is_text, keyed))

    # -- as Python writes them ----------------------------------------------------------------------------------------

    def _python_calls(self) -> Reading[None]:
        source = self._source
        if (yield from source.skip_space()) != "[":
            raise _NoCall
        source.at += 1
        while (mark := (yield from source.skip_space(","))) != "]":
            name, end = yield from source.until(["("], _LONGEST_NAME)
            self.name = self._check(name) if end else ""
            if not self.name:
                raise _NoCall
            self.begin()
            self._argue("{")
            separator = ""
            while (mark := (yield from source.skip_space(","))) != ")":
                key, end = yield from source.until(["="], _LONGEST_NAME)
                if not end:
                    raise _NoCall
                self._argue(f"{separator}{json.dumps(key.strip(), ensure_ascii=False)}: ")
                separator = ", "
                if not (yield from stream_python(source, self._argue)):
                    raise _NoCall
            source.at += 1
            self._argue("}")
            self._end()
        source.at += len(mark)
        source.take()
