"""Fetches ranges of one file over HTTP, and checks that each response belongs to the right content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from models.files.errors import ChangedOnHub
from models.files.integrity import digest_of
from models.formatting.sentence import Sentence
from models.hub.client import Hub, refusal
from models.hub.errors import Offline, RevisionNotFound
from models.hub.remote_source import file_client
from models.hub.repository import HubFile
from models.hub.session import reason, retry_after

if TYPE_CHECKING:
    import httpx

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


class TransientFailure(Exception):
    """A temporary failure; ``seconds`` is the wait that the server asks for, if any."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.seconds = seconds


class RangeRequests:
    """One file at one commit. Signed addresses expire, so each request begins at the Hub. Thread-safe."""

    def __init__(self, hub: Hub, repo_id: str, commit: str, file: HubFile, n_connections: int) -> None:
        import httpx  # slow to import: only when something is downloaded

        self._hub, self._repo_id, self._commit, self.file = hub, repo_id, commit, file
        self._url = hub.file_url(repo_id, commit, file.path)
        self._host = httpx.URL(hub.settings.address)
        self.are_ignored = False
        self._client = file_client(hub.settings, n_connections)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    @contextmanager
    def open(self, start: int, end: int) -> Iterator[Iterator[bytes]]:
        """The bytes from ``start`` to ``end`` as they arrive; may end early.

        Raises TransientFailure, ChangedOnHub, or HubError for a permanent failure.
        """
        import httpx

        if self._hub.settings.is_offline:
            raise Offline
        try:
            with self._client.stream("GET", self._url, headers={"Range": f"bytes={start}-{end - 1}"}) as response:
                self._check(response, start)
                skip = start if response.status_code == 200 else 0
                yield _slice(response.iter_raw(), skip, end - start)
        except httpx.TimeoutException as error:
            raise TransientFailure(Sentence("the server stopped sending")) from error
        except httpx.RequestError as error:
            raise TransientFailure(reason(error)) from error

    def _check(self, response: httpx.Response, start: int) -> None:
        status = response.status_code
        if status == 429:
            raise TransientFailure(Sentence("too many requests"), retry_after(response.headers) or 5.0)
        if status >= 500 or status == 408:
            raise TransientFailure(f"HTTP status {status}", retry_after(response.headers))
        if status >= 400:
            raise self._refused(response)
        self._check_content(response, start)

    def _refused(self, response: httpx.Response) -> Exception:
        status = response.status_code
        if status == 416:
            return ChangedOnHub(self.file.path, is_short=True)
        if (response.url.host, response.url.port) != (self._host.host, self._host.port):
            # The file host: its signed address has expired, or the file is not available for now.
            return TransientFailure(f"HTTP status {status} from {response.url.host}")
        settings, code = self._hub.settings, response.headers.get("X-Error-Code")
        error = refusal(settings, status, code, self._repo_id, self._commit, self.file.path)
        # The commit existed a moment ago: its branch was rewritten.
        return ChangedOnHub(self.file.path) if isinstance(error, RevisionNotFound) else error

    def _check_content(self, response: httpx.Response, start: int) -> None:
        first = response.history[-1] if response.history else response
        announced = next((r for r in (*response.history, response) if "X-Linked-ETag" in r.headers), first)
        etag = announced.headers.get("X-Linked-ETag") or ("" if response.history else announced.headers.get("ETag", ""))
        etag = etag.removeprefix("W/").strip('"')
        size = announced.headers.get("X-Linked-Size", "")
        if etag and len(etag) == len(digest_of(self.file.content)) and etag != digest_of(self.file.content):
            raise ChangedOnHub(self.file.path)
        if size.isdigit() and int(size) != self.file.n_bytes:
            raise ChangedOnHub(self.file.path)
        if response.status_code == 206:
            self._check_range(response.headers.get("Content-Range", ""), start)
        elif start or self.file.n_bytes:
            length = response.headers.get("Content-Length", "")
            if length.isdigit() and int(length) != self.file.n_bytes:
                # For example a network's page that asks for a login.
                raise TransientFailure(Sentence("it sent something else than the file"))
            self.are_ignored = True

    def _check_range(self, text: str, start: int) -> None:
        match = _CONTENT_RANGE.fullmatch(text)
        if match is None or int(match[1]) != start:
            raise TransientFailure(Sentence("it sent a different range than requested"))
        if match[3] != "*" and int(match[3]) != self.file.n_bytes:
            raise ChangedOnHub(self.file.path)


def _slice(chunks: Iterator[bytes], skip: int, n_bytes: int) -> Iterator[bytes]:
    """``n_bytes`` after the first ``skip``, with empty chunks while the first are skipped."""
    for chunk in chunks:
        dropped = min(skip, len(chunk))
        skip -= dropped
        yield (kept := chunk[dropped : dropped + n_bytes])
        n_bytes -= len(kept)
        if n_bytes <= 0:
            return
