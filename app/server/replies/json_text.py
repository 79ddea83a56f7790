"""JSON that comes in pieces: objects passed on as they come, strings decoded, other notations turned into JSON."""

from __future__ import annotations

import json
import re

from app.server.replies.reply_format import GEMMA_QUOTE
from app.server.replies.text_source import Give, Reading, TextSource

_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_CLOSER = {"{": "}", "[": "]"}
# A key, a number or a word such as true.
_LONGEST_WORD = 200
_DEEPEST = 100


def stream_json(source: TextSource, give: Give) -> Reading[bool]:
    """Pass on the object or list that comes next, as it is written; False where its brackets do not match."""
    closers: list[str] = []
    while True:
        mark = _MARK.search(source.text, source.at)
        if mark is None:
            _pass_on(source, len(source.text), give)
            yield from source.more()
            continue
        _pass_on(source, mark.end(), give)
        if mark[0] == '"':
            yield from _pass_string(source, give)
        elif mark[0] in _CLOSER:
            closers.append(_CLOSER[mark[0]])
        elif not closers or closers.pop() != mark[0]:
            return False
        elif not closers:
            return True


def _pass_on(source: TextSource, end: int, give: Give) -> None:
    if end > source.at:
        text, source.at = source.text[source.at : end], end
        source.take()
        give(text)


def _pass_string(source: TextSource, give: Give) -> Reading[None]:
    while True:
        mark = _IN_STRING.search(source.text, source.at)
        end = len(source.text) if mark is None else mark.start() if mark[0] == "\\" else mark.end()
        _pass_on(source, end, give)
        if mark is not None and mark[0] == '"':
            return
        while mark is not None and len(source.text) - source.at < 2:
            yield from source.more()
        if mark is not None:
            _pass_on(source, source.at + 2, give)
        else:
            yield from source.more()


def stream_string(source: TextSource, give: Give, quote: str = '"') -> Reading[bool]:
    """Pass on the content of the string whose opening quote was read; False for an invalid escape."""
    while True:
        ends = [at for at in (source.text.find(mark, source.at) for mark in (quote, "\\")) if at >= 0]
        _pass_on(source, min(ends, default=len(source.text)), give)
        if not ends:
            yield from source.more()
        elif source.text[source.at] == quote:
            source.at += 1
            return True
        else:
            said = yield from _escaped(source)
            if said is None:
                return False
            source.take()
            give(said)


def _escaped(source: TextSource) -> Reading[str | None]:
    """Read an escape; both halves of a character beyond U+FFFF."""
    size = 2
    while True:
        while len(source.text) - source.at < size:
            yield from source.more()
        escape = source.text[source.at : source.at + size]
        if escape[1] == "u" and size == 2:
            size = 6
            continue
        if escape[1] == "'":
            said = "'"  # Python's
        else:
            try:
                said = json.loads(f'"{escape}"')
            except ValueError:
                return None
        if size == 6 and "\ud800" <= said <= "\udbff":
            while len(source.text) - source.at < 8:
                yield from source.more()
            if source.text.startswith("\\u", source.at + 6):
                size = 12
                continue
        source.at += size
        return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def quoted(text: str) -> str:
    """Return text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _give_word(word: str, give: Give) -> None:
    word = {"True": "true", "False": "false", "None": "null"}.get(word, word)
    try:
        json.loads(word)
    except ValueError:
        word = json.dumps(word, ensure_ascii=False)
    give(word)


def stream_gemma(source: TextSource, give: Give) -> Reading[bool]:
    """Pass on Gemma's form of an object, ``{city:<|"|>Paris<|"|>,days:3}``, as JSON; False if it is malformed."""
    closers: list[str] = []
    while True:
        mark = yield from source.skip_space()
        if mark in _CLOSER:
            closers.append(_CLOSER[mark])
        if mark in "{}[],:":
            source.at += 1
            source.take()
            give(mark)
            if mark in "}]" and (not closers or closers.pop() != mark):
                return False
            if not closers:
                return True
        elif mark == "<":
            if not (yield from source.literal(GEMMA_QUOTE)):
                return False
            source.take()
            give('"')
            yield from source.stream_until([GEMMA_QUOTE], lambda text: give(quoted(text)))
            source.take()
            give('"')
        else:
            word, delimiter = yield from source.until([":", ",", "}", "]"], _LONGEST_WORD)
            if not delimiter:
                return False
            source.at -= 1
            source.take()
            if delimiter == ":":
                give(json.dumps(word.strip(), ensure_ascii=False))
            else:
                _give_word(word.strip(), give)


def stream_python(source: TextSource, give: Give, depth: int = 0) -> Reading[bool]:
    """Pass on a Python literal as JSON; False if it is malformed or nested too deeply."""
    mark = yield from source.skip_space()
    if mark in "\"'":
        source.at += 1
        source.take()
        give('"')
        is_whole = yield from stream_string(source, lambda text: give(quoted(text)), quote=mark)
        give('"')
        return is_whole
    if mark not in _CLOSER:
        word, delimiter = yield from source.until([",", ")", "]", "}", ":"], _LONGEST_WORD)
        if not delimiter:
            return False
        source.at -= 1
        source.take()
        _give_word(word.strip(), give)
        return True
    source.at += 1
    source.take()
    give(mark)
    while (next_one := (yield from source.skip_space())) != _CLOSER[mark]:
        if next_one in ",:":
            source.at += 1
            source.take()
            give(next_one)
        elif depth > _DEEPEST or not (yield from stream_python(source, give, depth + 1)):
            return False
    source.at += 1
    source.take()
    give(_CLOSER[mark])
    return True
