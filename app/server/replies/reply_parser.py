"""Takes a reply apart while it comes: reasoning, answer and tool calls, in one form of reply.

Nothing is held back longer than needed, and no marker is shown, wherever the text is cut. What begins like a call and
is none is text. A call is given from the moment on when its function is known; its arguments come as the model writes
them, also where they are malformed, since what was given cannot be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from app.server.replies.call_reader import CallReader, Tools
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece, ReasoningText
from app.server.replies.reply_format import Channels, JsonCalls, ReplyFormat, TaggedCalls
from app.server.replies.text_source import Reading, TextOver, TextSource, n_begun

_LONGEST_HEADER = 1_000
# How the names of special tokens begin.
_SPECIAL = ("<|", "<｜")


class ReplyParser:
    """Makes pieces of one reply.

    ``tools`` None leaves calls in the text; ``thinks`` says that the reply begins in thoughts, and ``goes_on`` that an
    earlier one began them. With ``tells_thoughts`` they are part of the answer, between their markers.
    """

    def __init__(
        self,
        form: ReplyFormat,
        tools: Tools | None = None,
        *,
        thinks: bool = False,
        goes_on: bool = False,
        tells_thoughts: bool = False,
    ) -> None:
        self._form, self._tools, self._thinks, self._tells_thoughts = form, tools, thinks, tells_thoughts
        self._source = TextSource()
        self._found: list[Piece] = []
        self._reader = CallReader(self._source, form.calls, tools, self._give_call)
        self._space = ""  # white space that may turn out to stand before a marker
        self._is_fresh = not goes_on  # nothing was said since the beginning, the thoughts or the last call
        self._drops_space = False
        self._is_silent = True  # no header came yet
        self._is_in_header = False
        self._in_thoughts = False
        self._reading = self._messages() if form.channels is not None else self._reply()
        self._resume()

    def feed(self, text: str) -> list[Piece]:
        """Take more text; return the pieces that are certain now."""
        self._source.feed(text)
        self._resume()
        return self._taken()

    def finish(self, *, is_cut: bool = False) -> list[Piece]:
        """Return the pieces that were held back: the text is over, cut by its limit of tokens where ``is_cut``."""
        self._reader.is_cut = is_cut
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
                yield from self._reader.read_bare(self._form.dropped)
            while True:
                yield from self._answer()
        except TextOver:
            self._end()

    def _end(self) -> None:
        """Give what is left at the end of the text."""
        calls = self._reader
        if calls.name and calls.is_cut:
            calls.begin()
        elif not calls.is_calling:
            rest = self._source.rest
            if calls.is_cut:
                # Nobody wants a part of a marker, or of a call without a name.
                if calls.is_undecided or any(rest.startswith(marker) for marker in calls.starts):
                    rest = self._space = ""
                rest = rest[: len(rest) - n_begun(rest, 0, self._watched())]
            self._tell(rest)
            if not self._is_fresh and not self._in_thoughts:
                self._give_space()

    def _watched(self) -> list[str]:
        """The markers that are looked for in the answer."""
        form = self._form
        markers = [*form.answer, *form.dropped, *self._reader.starts]
        if form.thinking is not None:
            # In the middle of an answer, a tag that is no special token may be part of it.
            thinking = form.thinking.open.strip(), form.thinking.close.strip()
            markers += [marker for marker in thinking if self._is_fresh or marker.startswith(_SPECIAL)]
        return [marker for marker in [*markers, *self._reader.ends] if marker]

    def _answer(self) -> Reading[None]:
        form = self._form
        watched = self._watched()
        marker = yield from self._until_marker(watched)
        if marker in self._reader.starts:
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
        ends = [close, *(start for start in self._reader.starts[:1] if self._may_end_thoughts(start))]
        self._in_thoughts = True
        self._mark_thoughts(thinking.open)
        marker = ""
        while marker != close:
            try:
                marker = yield from self._give_until(ends, self._thought)
            except TextOver:
                self._space = ""
                raise
            if marker != close and (yield from self._calls(marker)):
                break
            self._source.take()
        self._in_thoughts = False
        self._mark_thoughts(thinking.close)
        self._is_fresh, self._drops_space, self._space = True, True, ""

    def _give_until(self, ends: list[str], give: Callable[[str], None]) -> Reading[str]:
        """Give the text up to the first of its ends, and return that; where there is none, all that is left."""
        source = self._source
        try:
            return (yield from source.stream_until(ends, give))
        except TextOver:
            rest = source.rest
            give(rest[: len(rest) - n_begun(rest, 0, ends)] if self._reader.is_cut else rest)
            source.at = source.kept = len(source.text)
            raise

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

    def _calls(self, marker: str) -> Reading[bool]:
        """Read what the marker that was just read begins; where that is no call, it is text, and False is returned."""
        self._reader.needs_known = self._in_thoughts
        is_call = yield from self._reader.read(marker)
        if not is_call:
            self._is_fresh = False
            self._tell(marker)
        return is_call

    def _give_call(self, piece: CallBegun | CallArguments | CallEnded) -> None:
        self._found.append(piece)
        if isinstance(piece, CallBegun):
            self._space, self._in_thoughts = "", False
        elif isinstance(piece, CallEnded):
            self._is_fresh, self._drops_space = True, False

    def _tell(self, text: str) -> None:
        if self._in_thoughts:
            self._thought(text)
        else:
            self._say(text)

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
                if call is not None and self._is_for_a_tool(channels, call[1]):
                    yield from self._channel_call(call[1])
                elif re.search(channels.thinking, header):
                    self._is_fresh = True
                    self._mark_thoughts(f"{header}{channels.header_end}")
                    yield from self._give_until(ends, self._thought)
                    self._mark_thoughts(channels.ends[0])
                else:
                    if not re.search(channels.answer, header):
                        self._say(f"{'' if self._is_fresh else channels.start}{header}{channels.header_end}")
                    self._is_fresh = False
                    yield from self._give_until(ends, self._say)
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

    def _channel_call(self, name: str) -> Reading[None]:
        """Read the body of a call: its arguments, or all of a call in the model's tags."""
        if self._form.calls is not None:
            marker = yield from self._source.stream_until(self._reader.starts, lambda _: None)
            yield from self._calls(marker)
        else:
            self._reader.name = name
            yield from self._reader.read_arguments()

    def _end_channel(self, channels: Channels) -> None:
        if self._reader.name and self._reader.is_cut:
            self._reader.begin()
        elif self._is_in_header and not self._reader.is_cut:
            # No header after all. What a model of several messages writes besides is nothing for the reader.
            rest = self._source.rest
            if self._is_silent or (channels.answer and rest.strip()):
                self._say(("" if self._is_silent else channels.start) + rest)
        if not self._is_fresh:
            self._give_space()
