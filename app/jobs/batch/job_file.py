"""The input file, line by line and as often as needed, and one line of it as a request that can be sent, or why not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from core.values.errors import BadRequest

# The server takes bodies of half of that.
MAX_LINE = 16 * 1024 * 1024
STDIN = "-"
_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line that is not blank: its ``number`` from 1, its bytes (None where it is too long) and their digest."""

    number: int
    data: bytes | None
    digest: int


class JobFile:
    """Gives the lines of a file; what is piped in is put into a temporary file first."""

    def __init__(self, path: str) -> None:
        """Open ``path``, or standard input for ``-``. Raises BadRequest."""
        self.name = "standard input" if path == STDIN else path
        self._file = _spooled(sys.stdin.buffer) if path == STDIN else _opened(path)

    def is_same_as(self, path: Path) -> bool:
        """Return whether ``path`` is this very file, under whatever name."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except OSError:
            return False

    def lines(self) -> Iterator[InputLine]:
        """Yield the lines from the beginning; one line at a time is in memory."""
        self._file.seek(0)
        number = 0
        while data := self._file.readline(MAX_LINE + 1):
            number += 1
            if number == 1:
                data = data.removeprefix(_BYTE_ORDER_MARK)
            if len(data) > MAX_LINE and not data.endswith(b"\n"):
                yield InputLine(number, None, self._digest_of_long(data))
            elif stripped := data.strip():
                yield InputLine(number, stripped, _number(hashlib.sha256(stripped)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _digest_of_long(self, data: bytes) -> int:
        digest = hashlib.sha256()
        while data:
            digest.update(data)
            if data.endswith(b"\n"):
                break
            data = self._file.readline(_CHUNK)
        return _number(digest)


def _number(digest: hashlib._Hash) -> int:
    """Return the first 64 bits; never 0, which stands for no digest."""
    return int.from_bytes(digest.digest()[:8], "big") or 1


def _opened(path: str) -> BinaryIO:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the JobFile
    except IsADirectoryError:
        raise BadRequest(f"{path} is a folder: name the file with the requests.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadRequest(f"{path} cannot be read: {reason}.") from None
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    with file:
        return _spooled(file)


def _spooled(source: BinaryIO) -> BinaryIO:
    """Return everything that ``source`` has, in a file without a name: lines are read more than once."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the JobFile
    try:
        shutil.copyfileobj(source, file, _CHUNK)
        file.flush()
    except OSError as error:
        file.close()
        raise BadRequest(f"What is piped in could not be kept: {error.strerror}.") from None
    return file


_MESSAGES = "/v1/messages"
URLS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/rerank", _MESSAGES)


class BadBatchLine(Exception):
    """A line that is no request. ``code`` is for programs; ``custom_id`` is its own, if it has one."""

    def __init__(self, code: str, message: str, custom_id: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.custom_id = code, message, custom_id


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request in OpenAI's batch format; the method is always POST."""

    custom_id: str
    url: str
    body: Mapping[str, Any]

    def adapted(self, model: str | None, speed: str | None) -> dict[str, Any]:
        """Return the body with ``model`` in place of its own, and ``speed`` where it does not say how soon it is due.

        None leaves things as they are.
        """
        body = dict(self.body)
        if model is not None:
            body["model"] = model
        # Anthropic's tiers do not say how soon a message is due.
        tier = None if self.url == _MESSAGES else body.get("service_tier")
        if speed is not None and body.get("speed") is None and tier is None:
            body["speed"] = speed
        return body


def parse(data: bytes) -> BatchRequest:
    """Return the request of a line. Raises BadBatchLine."""
    fields = _object(data)
    custom_id = fields.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        raise BadBatchLine("missing_custom_id", "The line has no custom_id: give each line a text of its own.")
    if fields.get("method") != "POST":
        raise BadBatchLine("invalid_method", f"method must be POST, not {_shown(fields.get('method'))}.", custom_id)
    url = fields.get("url")
    if url not in URLS:
        raise BadBatchLine("invalid_url", f"url must be one of {', '.join(URLS)}, not {_shown(url)}.", custom_id)
    body = fields.get("body")
    if not isinstance(body, dict):
        raise BadBatchLine("invalid_body", "body must be an object: the request as it would be sent.", custom_id)
    if body.get("stream"):
        raise BadBatchLine("stream_in_batch", "A batch has no streams: leave stream out of the body.", custom_id)
    return BatchRequest(custom_id, url, body)


def _object(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadBatchLine("invalid_json", f"The line is not valid UTF-8 (byte {error.start + 1}).") from None
    except RecursionError:
        raise BadBatchLine("invalid_json", "The line's JSON is nested too deep.") from None
    except ValueError as error:
        raise BadBatchLine("invalid_json", f"The line is not valid JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise BadBatchLine("invalid_json", "The line is not a JSON object.")
    return fields


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:60]
