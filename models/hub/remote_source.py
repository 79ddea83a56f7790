"""A file on the Hub read in ranges over HTTP, so that its header is known before it is downloaded."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from models.facts.model_facts import ModelFacts, facts_from
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError, UnreadableFile
from models.gguf.header import read_header_from
from models.hub.client import Hub, refusal
from models.hub.errors import HubFault, Offline, TimedOut, Unreachable
from models.hub.repository import HubFile, HubModel, Repository
from models.hub.session import as_bad_proxy, reason, refuse_later
from models.hub.settings import HubSettings

if TYPE_CHECKING:
    import httpx

# The headers of models with the largest vocabularies have about 20 MB.
MAX_BYTES = 32 << 20
BLOCK_BYTES = 1 << 20


def file_client(settings: HubSettings, n_connections: int = 1) -> httpx.Client:
    """Return an HTTP client that fetches contents of files as they are stored; raises BadHubSetting."""
    import httpx  # slow to import: only when something is fetched

    with as_bad_proxy():
        return httpx.Client(
            headers={**settings.headers, "Accept-Encoding": "identity"},
            proxy=settings.proxy,
            timeout=settings.timeout,
            follow_redirects=True,
            limits=httpx.Limits(max_connections=2 * n_connections, max_keepalive_connections=2 * n_connections),
        )


class RemoteSource:
    """The bytes of one file on the Hub. Blocks are fetched once and kept; close it when the header is read."""

    def __init__(self, hub: Hub, repo_id: str, commit: str, file: HubFile) -> None:
        self.name, self.size = file.name, file.n_bytes
        self._hub, self._repo_id, self._path = hub, repo_id, file.path
        self._url = hub.file_url(repo_id, commit, file.path)
        self._commit = commit
        self._blocks: dict[int, bytes] = {}
        self._client = file_client(hub.settings)

    def __enter__(self) -> RemoteSource:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    @property
    def n_fetched(self) -> int:
        """Bytes fetched so far."""
        return sum(len(block) for block in self._blocks.values())

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Read a range; raises HubError, and UnreadableFile if the header is longer than any real one."""
        end = min(offset + n_bytes, self.size)
        if end <= offset:
            return b""
        first, last = offset // BLOCK_BYTES, (end - 1) // BLOCK_BYTES
        if self.n_fetched + (last - first) * BLOCK_BYTES > MAX_BYTES:
            raise UnreadableFile(
                "The header of {name} is longer than {most} MiB, so it is not read over the network.",
                name=self.name,
                most=MAX_BYTES >> 20,
            )
        raw = b"".join(self._block(index) for index in range(first, last + 1))
        return raw[offset - first * BLOCK_BYTES : end - first * BLOCK_BYTES]

    def _block(self, index: int) -> bytes:
        if index not in self._blocks:
            start = index * BLOCK_BYTES
            self._blocks[index] = self._fetch(start, min(start + BLOCK_BYTES, self.size))
        return self._blocks[index]

    def _fetch(self, start: int, end: int) -> bytes:
        import httpx

        settings = self._hub.settings
        if settings.is_offline:
            raise Offline
        try:
            with self._client.stream("GET", self._url, headers={"Range": f"bytes={start}-{end - 1}"}) as response:
                self._check(response, start)
                content = bytearray()
                for chunk in response.iter_raw():
                    content += chunk
                    if len(content) > end - start:
                        break
        except httpx.TimeoutException as error:
            raise TimedOut(settings.address, settings.timeout) from error
        except httpx.RequestError as error:
            raise Unreachable(settings.address, reason(error)) from error
        if len(content) < end - start:
            raise HubFault(
                Sentence(
                    "it sent {n_content:,} bytes of {name} instead of {n_wanted:,}",
                    n_content=len(content),
                    name=self.name,
                    n_wanted=end - start,
                )
            )
        return bytes(content[: end - start])

    def _check(self, response: httpx.Response, start: int) -> None:
        refuse_later(response.status_code, response.headers)
        if response.status_code >= 400:
            code = response.headers.get("X-Error-Code")
            raise refusal(self._hub.settings, response.status_code, code, self._repo_id, self._commit, self._path)
        if response.status_code != 206 and start > 0:
            raise HubFault(Sentence("it does not send parts of files"))


def remote_facts(hub: Hub, repository: Repository, model: HubModel) -> ModelFacts:
    """The facts of a model on the Hub, from the headers of all its parts.

    Reads a few MB; raises HubError and GgufError.
    """
    if model.missing:
        raise GgufError(
            "{repo_id} lacks {missing} of the parts of {name}. Choose another one.",
            repo_id=repository.repo_id,
            missing=model.missing,
            name=model.name,
        )
    with ExitStack() as opened:
        sources = [RemoteSource(hub, repository.repo_id, repository.commit, file) for file in model.files]
        return facts_from([read_header_from(opened.enter_context(source)) for source in sources])
