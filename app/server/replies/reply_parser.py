"""Takes a reply apart while it comes: reasoning, answer and tool calls, in one form of reply.

Nothing is held back longer than needed, and no marker is shown, wherever the text is cut. What begins like a call and
is none is text. A call is given from the moment on when its function is known; its arguments come as the model writes
them, also where they are malformed, since what was given cannot be taken back.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from app.server.replies.json_text import quoted, stream_gemma, stream_json, stream_python, stream_string
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece, ReasoningText
from app.server.replies.reply_format import (
    ANY,
    Channels,
    JsonCalls,
    KeyedArguments,
    PythonCalls,
    ReplyFormat,
    TaggedCalls,
    tags,
)
from app.server.replies.text_source import Reading, TextOver, TextSource, n_begun

# Parameters by name of the function, as JSON schemas.
Tools = Mapping[str, Mapping[str, Any]]
# A function's name has 128 characters at most (schemas.Function), a key as many.
_LONGEST_NAME = 256
_LONGEST_HEADER = 1_000
# What is read of a call before its function is known.
_LONGEST_CALL = 1_000_000
# Keys of a call that some models use instead of those of their template.
_NAME_KEYS, _ARGUMENTS_KEYS = ("name", "tool_name"), ("arguments", "parameters")
# What can begin a call although its first marker is missing, as Qwen3-Coder writes them.
_SHORTEST_START = 6
# How the names of special tokens begin.
_SPECIAL = ("<|", "<｜")
# What DeepSeek V3.2 and Kimi K3 say of an argument that is text.
_IS_TEXT = ("true", "string")
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_LONGEST_PYTHON = 100_000


class _NoCall(Exception):
    """What began like a call is none."""


class ReplyParser:
    """Makes pieces of one reply.

    ``tools`` None leaves calls in the text; ``thinks`` says that the reply begins in thoughts. With ``tells_thoughts``
    they are part of the answer, between their markers.
    """

    def __init__(
        self, form: ReplyFormat, tools: Tools | None = None, *, thinks: bool = False, tells_thoughts: bool = False
    ) -> None:
        self._form, self._tools, self._thinks, self._tells_thoughts = form, tools, thinks, tells_thoughts
        self._source = TextSource()
        self._found: list[Piece] = []
        self._is_cut = False
        self._name = ""  # of a call that has not begun yet
        self._is_calling = False
        self._space = ""  # white space that may turn out to stand before a marker
        self._is_fresh = True  # nothing was said since the beginning, the thoughts or the last call
        self._drops_space = False
        self._has_called = False
        self._is_silent = True  # no header came yet
        self._is_in_header = False
        self._in_thoughts = False
        self._is_undecided = False  # what is held back may begin a call, or be between two of them
        self._reading = self._messages() if form.channels is not None else self._reply()
        self._resume()

    def feed(self, text: str) -> list[Piece]:
        """Take more text; return the pieces that are certain now."""
        self._source.feed(text)
        self._resume()
        return self._taken()

    def finish(self, *, is_cut: bool = False) -> list[Piece]:
        """Return the pieces that were held back: the text is over, cut by its limit of tokens where ``is_cut``."""
        self._is_cut = is_cut
        self._source.is_over = True
        self._resume()
        return self._taken()

    def _resume(self) -> None:
        try:
            next(self._reading)
        except StopIteration:
            self._source.at = self._source.kept = len(self._source.text)

    def _taken(self) -> list[Piece]:
        """Return what was found, pieces of one kind joined."""
        found, self._found = self._found, []
        joined: list[Piece] = []
        for piece in found:
            last = joined[-1] if joined else None
            if isinstance(piece, ContentText | ReasoningText | CallArguments) and type(last) is type(piece):
                joined[-1] = type(piece)(last[0] + piece.text)
            else:
                joined.append(piece)
        return joined

    # -- the reply as a whole -----------------------------------------------------------------------------------------

    def _reply(self) -> Reading[None]:
        try:
            if self._thinks:
                yield from self._think()
            if isinstance(self._form.calls, JsonCalls) and not self._form.calls.open:
                yield from self._bare_calls()
            while True:
                yield from self._answer()
        except TextOver:
            self._end()

    def _end(self) -> None:
        """Give what is left at the end of the text."""
        if self._name and self._is_cut:
            self._begin_call()
        elif not self._is_calling:
            rest = self._source.rest
            if self._is_cut:
                # Nobody wants a part of a marker, or of a call without a name.
                if self._is_undecided or any(rest.startswith(marker) for marker in self._starts()):
                    rest = self._space = ""
                rest = rest[: len(rest) - n_begun(rest, 0, self._watched())]
            self._tell(rest)
            if not self._is_fresh and not self._in_thoughts:
                self._give_space()

    def _watched(self) -> list[str]:
        """The markers that are looked for in the answer."""
        form = self._form
        markers = [*form.answer, *form.dropped, *self._starts()]
        if form.thinking is not None:
            # In the middle of an answer, a tag that is no special token may be part of it.
            thinking = form.thinking.open.strip(), form.thinking.close.strip()
            markers += [marker for marker in thinking if self._is_fresh or marker.startswith(_SPECIAL)]
        if self._has_called and form.calls is not None:
            markers += tags(form.calls.close)
            if not isinstance(form.calls, PythonCalls):
                markers += [tag for tag in tags(form.calls.between) if ANY not in tag and tag not in self._starts()]
        return [marker for marker in markers if marker]

    def _starts(self) -> list[str]:
        """The markers that begin a call."""
        calls = self._form.calls
        if self._tools is None or calls is None or not calls.open.strip():
            return []
        first, *others = [tag.partition(ANY)[0] for tag in tags(calls.open)]
        if not isinstance(calls, TaggedCalls):
            return [first]
        return [first, *(tag for tag in others if len(tag) >= _SHORTEST_START)]

    def _answer(self) -> Reading[None]:
        form = self._form
        watched = self._watched()
        marker = yield from self._until_marker(watched)
        if marker in self._starts():
            yield from self._calls(marker)
        elif form.thinking is not None and marker == form.thinking.open.strip():
            self._source.take()
            yield from self._think()
        else:
            self._source.take()
            self._space = ""
            self._drops_space = self._is_fresh

    def _until_marker(self, watched: list[str]) -> Reading[str]:
        """Say the answer up to the next marker. Once something was said, other markers count."""
        source = self._source
        while self._is_fresh:
            # What begins with a marker of the thinking must be known before the first word.
            text = source.text[source.at :]
            spoken = text.lstrip()
            if spoken and not any(m.startswith(spoken[: len(m)]) or spoken.startswith(m) for m in watched):
                self._is_fresh = False
                self._say(text[: len(text) - len(spoken)])
                source.at += len(text) - len(spoken)
                return (yield from source.stream_until(self._watched(), self._say))
            if spoken and (found := max((m for m in watched if spoken.startswith(m)), key=len, default="")):
                source.at += len(text) - len(spoken) + len(found)
                source.kept = source.at - len(found)
                return found
            yield from source.more()
        return (yield from source.stream_until(watched, self._say))

    def _say(self, text: str) -> None:
        """Give text of the answer; white space at its end waits for what follows."""
        if self._drops_space:
            text = text.lstrip()
        if not text:
            return
        self._drops_space = False
        said = text.rstrip()
        if not said:
            self._space += text
            return
        self._is_fresh = False
        self._found.append(ContentText(self._space + said))
        self._space = text[len(said) :]

    def _give_space(self) -> None:
        if self._space:
            self._found.append(ContentText(self._space))
            self._space = ""

    def _think(self) -> Reading[None]:
        """Give what is thought, without the white space around it."""
        thinking = self._form.thinking
        assert thinking is not None
        close = thinking.close.strip()
        # A call ends the thoughts too, as Kimi K2 and Qwen3.5 write it; what is only thought of is seldom whole.
        ends = [close, *(start for start in self._starts()[:1] if self._may_end_thoughts(start))]
        self._in_thoughts = True
        self._mark_thoughts(thinking.open)
        marker = ""
        while marker != close:
            try:
                marker = yield from self._source.stream_until(ends, self._thought)
            except TextOver:
                rest = self._source.rest
                self._thought(rest[: len(rest) - n_begun(rest, 0, ends)] if self._is_cut else rest)
                self._space = ""
                self._source.at = self._source.kept = len(self._source.text)
                raise
            if marker != close and (yield from self._calls(marker)):
                break
            self._source.take()
        self._in_thoughts = False
        self._mark_thoughts(thinking.close)
        self._is_fresh, self._drops_space, self._space = True, True, ""

    def _mark_thoughts(self, marker: str) -> None:
        if self._tells_thoughts:
            self._found.append(ContentText(marker))

    def _may_end_thoughts(self, start: str) -> bool:
        return start.startswith(_SPECIAL) or isinstance(self._form.calls, TaggedCalls)

    def _thought(self, text: str) -> None:
        said = (self._space + text).rstrip()
        if self._is_fresh:
            said = said.lstrip()
        if not said:
            self._space += text
            return
        self._space = text[len(text.rstrip()) :]
        self._is_fresh = False
        self._found.append(ContentText(said) if self._tells_thoughts else ReasoningText(said))

    # -- calls --------------------------------------------------------------------------------------------------------

    def _calls(self, marker: str) -> Reading[bool]:
        """Read what the marker that was just read begins; where that is no call, it is text, and False is returned."""
        form, source = self._form.calls, self._source
        start = source.at - len(marker)
        source.kept = start
        self._is_undecided = True
        try:
            if isinstance(form, JsonCalls):
                yield from self._json_calls(form, marker)
            elif isinstance(form, TaggedCalls):
                yield from self._tagged_call(form, marker)
            elif isinstance(form, PythonCalls):
                yield from self._python_calls()
        except _NoCall:
            self._name = ""
            if not self._is_calling:
                # Nothing was taken since the call began, or the last one of a list ended.
                source.at = source.kept
                if source.text.startswith(marker, source.at):
                    source.at += len(marker)
                    source.take()
                    self._is_fresh = self._is_undecided = False
                    self._tell(marker)
                    return False
            else:
                self._is_calling, self._has_called = False, True
            source.take()
        self._is_undecided = False
        return True

    def _tell(self, text: str) -> None:
        if self._in_thoughts:
            self._thought(text)
        else:
            self._say(text)

    def _begin_call(self) -> None:
        self._space = ""
        self._found.append(CallBegun(f"call_{os.urandom(12).hex()}", self._name))
        self._name, self._is_calling, self._in_thoughts = "", True, False
        self._source.take()

    def _argue(self, text: str) -> None:
        self._found.append(CallArguments(text))

    def _end_call(self) -> None:
        self._found.append(CallEnded())
        self._is_calling = False
        self._is_fresh = True
        self._has_called = True
        self._drops_space = False
        self._source.take()

    def _check(self, name: str, *, is_known: bool = False) -> str:
        """Return a function's name; raises _NoCall where it cannot be one, or is none of the tools if ``is_known``."""
        name = name.strip()
        is_known = is_known or self._in_thoughts
        if not name or not re.fullmatch(r"[^\s<>{}\[\]\"']+", name) or (is_known and name not in (self._tools or ())):
            raise _NoCall
        return name

    def _bare_calls(self) -> Reading[None]:
        """Read calls that are all of a reply, without any marker: JSON with the name of a tool."""
        form, source = self._form.calls, self._source
        assert isinstance(form, JsonCalls)
        marker = yield from self._drop_leading()
        if self._tools is None or marker not in ("{", "["):
            return
        self._is_undecided = True
        try:
            yield from self._json_calls(form, "", is_known=True)
        except _NoCall:
            self._name = ""
            if not self._is_calling:
                source.at = source.kept
            self._is_calling = False
        self._is_undecided = False

    def _drop_leading(self) -> Reading[str]:
        """Skip what may stand before a call without a marker; return the next character."""
        source = self._source
        source.take()
        try:
            while (yield from source.skip_space()) == "<" and (
                yield from source.literal(*self._form.dropped or ("\0",))
            ):
                source.take()
        except TextOver:
            source.at = source.kept
            raise
        found = yield from source.peek()
        if found not in "{[":
            source.at = source.kept
        return found

    def _json_calls(self, form: JsonCalls, marker: str, *, is_known: bool = False) -> Reading[None]:
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
        source, begun = self._source, None
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
            if not form.name and begun is None and value == "{":
                self._name = self._check(key, is_known=is_known)
                begun = yield from self._json_arguments(value)
            elif key in (form.name, *_NAME_KEYS) and not self._name and begun is None and value == '"':
                source.at += 1
                name = yield from self._whole_string()
                self._name = self._check(name, is_known=is_known)
                if early:
                    self._give_early(early)
                    begun = True
            elif key in (form.arguments, *_ARGUMENTS_KEYS) and begun is None:
                if self._name:
                    begun = yield from self._json_arguments(value)
                else:
                    early = yield from self._whole_value()
            elif key == "function" and value == "{" and begun is None:
                source.at += 1
                depth += 1
            else:
                yield from self._whole_value()
        if begun is None:
            if not self._name:
                raise _NoCall
            self._begin_call()
            self._argue("{}")
        self._end_call()

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
            self._begin_call()
            if not (yield from stream_json(source, self._argue)):
                raise _NoCall
        elif first == '"':
            source.at += 1
            if (yield from source.skip_space()) not in '{"':
                raise _NoCall
            self._begin_call()
            if not (yield from stream_string(source, self._argue)):
                raise _NoCall
        elif (yield from source.literal("null")):
            self._begin_call()
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
        self._begin_call()
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

    # -- calls between tags -------------------------------------------------------------------------------------------

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
        self._name = self._check(name, is_known=at > 0 and not self._has_called)
        source.at -= len(end)
        yield from source.skip_space()
        if name_end:
            yield from self._pattern(form.after_name.strip())
        is_whole = yield from (self._keyed(form, keyed) if keyed is not None else self._object(form))
        if not is_whole:
            raise _NoCall
        if self._is_calling:
            self._end_call()

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
            self._begin_call()
            self._argue("{}")
            return True
        self._begin_call()
        return (yield from (stream_gemma if form.arguments == "gemma" else stream_json)(source, self._argue))

    def _keyed(self, form: TaggedCalls, keyed: KeyedArguments) -> Reading[bool]:
        """Pass on arguments that stand each between markers as one JSON object."""
        source, closers = self._source, tags(form.close)
        before_key = keyed.before_key.strip()
        schema = (self._tools or {}).get(self._name, {})
        self._begin_call()
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
                yield from self._keyed_value(keyed, key, _is_text(schema, key, kind), [before_key, *closers[:1]])
        except TextOver:
            if not self._is_cut:
                self._argue("}")
                self._end_call()
            raise
        self._argue("}")
        if not found:
            self._end_call()
        return True

    def _keyed_value(self, keyed: KeyedArguments, key: str, is_text: bool | None, also: list[str]) -> Reading[None]:
        """Pass on one value; a text as it comes, all else when it is whole."""
        source = self._source
        close = keyed.close.replace(ANY, key)
        ends = [close.strip()]
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
            yield from source.stream_until(ends, give)
        except TextOver:
            if not self._is_cut:
                give(source.rest)
                self._argue('"' if is_text else _value_of("".join(value), is_text, keyed))
            raise
        source.take()
        self._argue('"' if is_text else _value_of("".join(value), is_text, keyed))

    # -- calls as Python writes them ----------------------------------------------------------------------------------

    def _python_calls(self) -> Reading[None]:
        source = self._source
        if (yield from source.skip_space()) != "[":
            raise _NoCall
        source.at += 1
        while (mark := (yield from source.skip_space(","))) != "]":
            name, end = yield from source.until(["("], _LONGEST_NAME)
            self._name = self._check(name) if end else ""
            if not self._name:
                raise _NoCall
            self._begin_call()
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
            self._end_call()
        source.at += len(mark)
        source.take()

    # -- replies of several messages ----------------------------------------------------------------------------------

    def _messages(self) -> Reading[None]:
        channels = self._form.channels
        assert channels is not None
        source = self._source
        try:
            while True:
                header = yield from self._header(channels)
                ends = [channels.start, *channels.ends]
                call = re.search(channels.recipient, header)
                is_call = (
                    call is not None and self._tools is not None and (not channels.answer or call[1] in self._tools)
                )
                if call is not None and is_call:
                    self._name = call[1]
                    yield from self._channel_call()
                elif re.search(channels.thinking, header):
                    self._is_fresh = True
                    self._mark_thoughts(f"{header}{channels.header_end}")
                    yield from self._channel_text(ends, self._thought)
                    self._mark_thoughts(channels.ends[0])
                else:
                    if not re.search(channels.answer, header):
                        self._say(f"{'' if self._is_fresh else channels.start}{header}{channels.header_end}")
                    self._is_fresh = False
                    yield from self._channel_text(ends, self._say)
                source.take()
        except TextOver:
            self._end_channel(channels)

    def _is_for_a_tool(self, channels: Channels, recipient: str) -> bool:
        # Where a plain word is a header, it must be one of the tools.
        return self._tools is not None and (not channels.answer or recipient in self._tools)

    def _header(self, channels: Channels) -> Reading[str]:
        source = self._source
        self._is_in_header = True
        if not channels.answer:
            self._space = ""
        while True:
            text, end = yield from source.until([channels.header_end], _LONGEST_HEADER)
            if end:
                self._is_in_header = self._is_silent = False
                source.take()
                return text.rpartition(channels.start)[2]
            # No header has an end so far away: the model answers in a form of its own.
            self._say(text)
            source.at = len(source.text)
            source.take()

    def _channel_call(self) -> Reading[None]:
        """Read the body of a call: its arguments, or all of a call in the model's tags."""
        source = self._source
        if isinstance(self._form.calls, TaggedCalls):
            self._name = ""
            marker = yield from source.stream_until(self._starts(), lambda _: None)
            yield from self._calls(marker)
            return
        if (yield from source.skip_space()) != "{":
            self._name = ""
            return
        self._begin_call()
        if (yield from stream_json(source, self._argue)):
            self._end_call()
        self._is_calling = False

    def _channel_text(self, ends: list[str], give: Callable[[str], None]) -> Reading[None]:
        try:
            yield from self._source.stream_until(ends, give)
        except TextOver:
            rest = self._source.rest
            give(rest[: len(rest) - n_begun(rest, 0, ends)] if self._is_cut else rest)
            self._source.at = self._source.kept = len(self._source.text)
            raise
        self._source.take()

    def _end_channel(self, channels: Channels) -> None:
        if self._name and self._is_cut:
            self._begin_call()
        elif self._is_in_header and not self._is_cut:
            # No header after all. What a model of several messages writes besides is nothing for the reader.
            rest = self._source.rest
            if self._is_silent or (channels.answer and rest.strip()):
                self._say(("" if self._is_silent else channels.start) + rest)
        if not self._is_fresh:
            self._give_space()


def _is_text(schema: Mapping[str, Any], key: str, kind: str) -> bool | None:
    """Return whether an argument is text, by what the model says of it, else by the schema; None if nobody says."""
    if kind in _IS_TEXT:
        return True
    if kind:
        return False
    properties = schema.get("properties")
    found = properties.get(key) if isinstance(properties, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    type_ = found.get("type")
    if type_ == "string" or (isinstance(found.get("enum"), list) and all(isinstance(e, str) for e in found["enum"])):
        return True
    return False if isinstance(type_, str) else None


def _value_of(text: str, is_text: bool | None, keyed: KeyedArguments) -> str:
    """Return a value as JSON; what is none, and none of Python's, is text."""
    text = text.strip()
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        return text
    if keyed.before_key in text and ANY in keyed.close:
        try:
            nested = _nested(text, keyed)
            if nested is not None:
                return json.dumps(nested, ensure_ascii=False)
        except RecursionError:
            pass
    if is_text is False and len(text) < _LONGEST_PYTHON:
        # Templates that write values with jinja's own ``string`` teach models Python's notation.
        try:
            return json.dumps(ast.literal_eval(text), ensure_ascii=False)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
        if text in ("true", "false", "null"):
            return text
    return json.dumps(text, ensure_ascii=False)


def _nested(text: str, keyed: KeyedArguments) -> Any:
    """Return an object, or a list of ``item``, whose entries stand between markers like arguments: MiniMax M3."""
    found: list[tuple[str, Any]] = []
    text = text.strip()
    while text:
        key, is_key, behind = text.removeprefix(keyed.before_key).partition(keyed.after_key)
        inner, is_closed, rest = behind.partition(keyed.close.replace(ANY, key))
        if not (text.startswith(keyed.before_key) and is_key and is_closed):
            return None
        value = _nested(inner, keyed) if keyed.before_key in inner else json.loads(_value_of(inner, None, keyed))
        found.append((key, value))
        text = rest.strip()
    return [value for _, value in found] if all(key == "item" for key, _ in found) else dict(found)
