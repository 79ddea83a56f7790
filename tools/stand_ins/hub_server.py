"""A Hub on a real socket: the part of its API that the app and huggingface_hub use, with optional faults."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlparse

TOKEN = "hf_good"
STRANGER = "hf_stranger"
PAGE = 20
_MODEL = re.compile(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?")
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass
class Fault:
    """A fault in the content of a file, or at an address of the API.

    ``times`` counts the answers it spoils (None: all). ``cut_after`` and ``stall_after`` count bytes of one answer;
    ``corrupt_at`` are positions in the file whose byte is flipped; ``status`` answers with an error instead.
    """

    times: int | None = None
    skip: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    stall_after: int | None = None
    corrupt_at: tuple[int, ...] = ()
    ignores_ranges: bool = False
    bytes_per_second: float | None = None
    body: bytes | None = None
    claims_total: int | None = None


@dataclass
class HubRepo:
    """One repository. ``old`` keeps the contents of earlier commits."""

    files: dict[str, bytes]
    gated: str | bool = False
    is_private: bool = False
    downloads: int = 1
    likes: int = 0
    modified: str = "2026-01-01T00:00:00.000Z"
    tags: tuple[str, ...] = ("gguf", "license:apache-2.0", "base_model:acme/base", "base_model:quantized:acme/base")
    plain: frozenset[str] = frozenset()
    n_params: int = 11_309_952
    architecture: str = "llama"
    version: int = 0
    old: dict[str, dict[str, bytes]] = field(default_factory=dict)
    keeps_old: bool = True

    @property
    def commit(self) -> str:
        return f"{self.version:040x}"

    def change(self, files: dict[str, bytes]) -> None:
        """Make a new commit with some files changed."""
        self.old[self.commit] = dict(self.files)
        self.files = {**self.files, **files}
        self.version += 1

    def at(self, revision: str) -> dict[str, bytes] | None:
        if revision in ("main", self.commit):
            return self.files
        return self.old.get(revision) if self.keeps_old else None

    def is_large(self, name: str) -> bool:
        return name.lower().endswith(".gguf") and name not in self.plain


@dataclass(frozen=True)
class SeenRequest:
    """One request that arrived; ``sent`` counts the bytes of content that went out for it."""

    server: str
    method: str
    path: str
    range: str | None
    authorization: str | None
    n_sent: list[int] = field(default_factory=lambda: [0])


class HubServer:
    """The Hub, and on a second port the file host to which it redirects, as the real one does."""

    def __init__(self) -> None:
        self.repos: dict[str, HubRepo] = {}
        self.renamed: dict[str, str] = {}
        self.asked: list[SeenRequest] = []
        self.stopped = threading.Event()
        self._faults: dict[str, list[Fault]] = {}
        self._lock = threading.Lock()
        self._servers = [_Server(self, _Hub), _Server(self, _FileHost)]
        self.address, self.files_address = (server.address for server in self._servers)

    def add(self, repo_id: str, files: dict[str, bytes], **settings: Any) -> HubRepo:
        self.repos[repo_id] = HubRepo(files, **settings)
        return self.repos[repo_id]

    def fault(self, name: str, fault: Fault) -> None:
        """Spoil the content of the file called ``name``, or answers of the hub whose path contains "/..."."""
        with self._lock:
            self._faults.setdefault(name, []).append(fault)

    def heal(self) -> None:
        with self._lock:
            self._faults.clear()

    def take_fault(self, name: str, *, is_path: bool = False) -> Fault:
        """Return the next fault for this answer; a fault without effect if there is none."""
        with self._lock:
            for key, faults in self._faults.items():
                if key == name or (is_path and key.startswith("/") and key in name):
                    for fault in faults:
                        if fault.skip:
                            fault.skip -= 1
                        elif fault.times is None or fault.times > 0:
                            fault.times = None if fault.times is None else fault.times - 1
                            return fault
        return Fault()

    def content_requests(self) -> list[SeenRequest]:
        return [asked for asked in self.asked if asked.server == "files"]

    @property
    def n_content_bytes(self) -> int:
        return sum(asked.n_sent[0] for asked in self.content_requests())

    def stop(self) -> None:
        """Answer nobody any more, not even on the connections that there are."""
        self.stopped.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
            server.cut_connections()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, hub: HubServer, handler: type[_Handler]) -> None:
        self._connections = set[socket.socket]()
        super().__init__(("127.0.0.1", 0), handler)
        self.hub = hub
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        for connection in tuple(self._connections):
            with contextlib.suppress(OSError):  # it has gone by itself
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that go away: many tests do that on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    kind = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.url = urlparse(self.path)
        self.path_text = unquote(self.url.path)
        self.asked = SeenRequest(
            self.kind, self.command, self.path, self.headers.get("Range"), self.headers.get("Authorization")
        )
        self.hub.asked.append(self.asked)
        self.answer_request()

    def do_HEAD(self) -> None:
        self.do_GET()

    @property
    def hub(self) -> HubServer:
        return self.server.hub

    def answer_request(self) -> None:
        raise NotImplementedError

    def answer(self, status: int, body: bytes | dict[str, Any] | list[Any] = b"", **headers: object) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if not isinstance(body, bytes):
            self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def refuse(self, status: int, code: str, message: str) -> None:
        self.answer(status, {"error": message}, X_Error_Code=code, X_Error_Message=message)

    def spoil(self, fault: Fault) -> bool:
        """Answer as the fault says if it replaces the whole answer; return whether it does."""
        if fault.stall_after == 0 and fault.status is None:
            self.hub.stopped.wait(30)
            self.close_connection = True
            return True
        if fault.status is None:
            return False
        body = fault.body if fault.body is not None else b"something went wrong"
        self.answer(fault.status, body, **{name.replace("-", "_"): value for name, value in fault.headers.items()})
        return True


class _Hub(_Handler):
    kind = "hub"

    def answer_request(self) -> None:
        fault = self.hub.take_fault(self.path_text, is_path=True)
        if self.spoil(fault):
            return
        if fault.body is not None:
            self.answer(200, fault.body, Content_Type="application/json")
        elif self.path_text == "/api/whoami-v2":
            self._who_am_i()
        elif self.path_text == "/api/models":
            self._search()
        elif match := _MODEL.fullmatch(self.path_text):
            self._model(match[1], match[2] or "", match[3] or "main")
        elif match := _RESOLVE.fullmatch(self.path_text):
            self._resolve(match[1], match[2], match[3])
        else:
            self.refuse(404, "", "Not Found")

    @property
    def _token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def _who_am_i(self) -> None:
        if self._token in (TOKEN, STRANGER):
            self.answer(200, {"name": "tester", "type": "user"})
        else:
            self.refuse(401, "", "Invalid credentials in Authorization header")

    def _search(self) -> None:
        query = parse_qs(self.url.query)
        words = query.get("search", [""])[0].lower().split()
        found = [
            _model_json(repo_id, repo)
            for repo_id, repo in self.hub.repos.items()
            if all(word in repo_id.lower() for word in words)
            and set(query.get("filter", [])) <= set(repo.tags)
            and (not repo.is_private or self._token == TOKEN)
            and ("gated" not in query or bool(repo.gated) == (query["gated"][0].lower() == "true"))
        ]
        found.sort(key=lambda model: model[query.get("sort", ["downloads"])[0]], reverse=True)
        start, limit = int(query.get("cursor", ["0"])[0]), min(PAGE, int(query.get("limit", ["1000"])[0]))
        headers = {}
        if start + limit < len(found):
            following = [(k, v) for k, values in query.items() if k != "cursor" for v in values]
            link = urlencode([*following, ("cursor", start + limit)])
            headers["Link"] = f'<{self.server.address}/api/models?{link}>; rel="next"'
        self.answer(200, found[start : start + limit], **headers)

    def _model(self, repo_id: str, kind: str, revision: str) -> None:
        repo = self._repo(repo_id)
        if repo is None:
            return
        files = repo.at(revision)
        if files is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif kind == "tree":
            self.answer(200, [_tree_entry(name, content, repo) for name, content in files.items()])
        else:
            self.answer(200, _model_json(repo_id, repo, with_sizes="blobs" in self.url.query, revision=revision))

    def _resolve(self, repo_id: str, revision: str, name: str) -> None:
        repo = self._repo(repo_id)
        if repo is None or self._is_closed(repo):
            return
        files = repo.at(revision)
        if files is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif name not in files:
            self.refuse(404, "EntryNotFound", "Entry not found")
        elif repo.is_large(name):
            commit = repo.commit if revision == "main" else revision
            content = files[name]
            self.answer(
                302,
                Location=f"{self.hub.files_address}/{repo_id}/{commit}/{quote(name)}?signature=1",
                X_Repo_Commit=commit,
                X_Linked_Size=len(content),
                X_Linked_ETag=f'"{_sha256(content)}"',
                ETag='"pointer"',
            )
        else:
            commit = repo.commit if revision == "main" else revision
            serve_content(self, files[name], self.hub.take_fault(name), _git_id(files[name]), X_Repo_Commit=commit)

    def _repo(self, repo_id: str) -> HubRepo | None:
        """Return the repository; None if the caller was answered that there is none, or that it has moved."""
        if repo_id in self.hub.renamed:
            target = self.path.replace(quote(repo_id), self.hub.renamed[repo_id], 1)
            self.answer(307, Location=target)
            return None
        repo = self.hub.repos.get(repo_id)
        if repo is not None and (not repo.is_private or self._token == TOKEN):
            return repo
        if self._token and self._token not in (TOKEN, STRANGER):
            self.refuse(401, "", "Invalid credentials in Authorization header")
        elif self._token:
            self.refuse(404, "RepoNotFound", "Repository not found")
        else:
            self.refuse(401, "RepoNotFound", "Invalid username or password.")
        return None

    def _is_closed(self, repo: HubRepo) -> bool:
        if not repo.gated or self._token == TOKEN:
            return False
        if self._token:
            self.refuse(403, "GatedRepo", "Access to this model is restricted and you are not in the authorized list.")
        else:
            self.refuse(401, "GatedRepo", "Access to this model is restricted. You must be authenticated.")
        return True


class _FileHost(_Handler):
    kind = "files"

    def answer_request(self) -> None:
        owner, repo, commit, name = self.path_text.removeprefix("/").split("/", 3)
        fault = self.hub.take_fault(name)
        if self.spoil(fault):
            return
        files = self.hub.repos[f"{owner}/{repo}"].at(commit)
        if files is None:
            self.answer(404, b"gone")
        else:
            serve_content(self, files[name], fault, "of the file host")


def serve_content(handler: _Handler, content: bytes, fault: Fault, etag: str, **headers: object) -> None:
    """Answer with a file or the range of it that was asked for, spoilt as the fault says."""
    for at in fault.corrupt_at:
        content = content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
    start, end, status = 0, len(content), 200
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range", ""))
    if asked and not fault.ignores_ranges:
        start, end, status = int(asked[1]), min(int(asked[2]) + 1 if asked[2] else end, end), 206
        if start >= len(content):
            handler.answer(416, Content_Range=f"bytes */{len(content)}")
            return
    handler.send_response(status)
    total = fault.claims_total or len(content)
    for name, value in {"ETag": f'"{etag}"', "Accept-Ranges": "bytes", **headers}.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.send_header("Content-Length", str(end - start))
    if status == 206:
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{total}")
    handler.end_headers()
    if handler.command != "HEAD":
        _send(handler, content[start:end], fault)


def _send(handler: _Handler, content: bytes, fault: Fault) -> None:
    for block in _blocks(content, fault):
        handler.wfile.write(block)
        handler.asked.n_sent[0] += len(block)
        if fault.bytes_per_second:
            time.sleep(len(block) / fault.bytes_per_second)
    if fault.stall_after is not None and fault.stall_after < len(content):
        handler.hub.stopped.wait(30)
    if min(fault.cut_after or len(content), fault.stall_after or len(content)) < len(content):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)


def _blocks(content: bytes, fault: Fault) -> Iterator[memoryview]:
    limits = [limit for limit in (fault.cut_after, fault.stall_after) if limit is not None]
    view = memoryview(content)[: min([len(content), *limits])]
    block = 1 << 14 if fault.bytes_per_second else 1 << 18
    for start in range(0, len(view), block):
        yield view[start : start + block]


def _model_json(repo_id: str, repo: HubRepo, *, with_sizes: bool = False, revision: str = "main") -> dict[str, Any]:
    files = repo.at(revision) or {}
    return {
        "_id": "0",
        "id": repo_id,
        "modelId": repo_id,
        "author": repo_id.split("/")[0],
        "sha": repo.commit if revision == "main" else revision,
        "private": repo.is_private,
        "gated": repo.gated,
        "downloads": repo.downloads,
        "likes": repo.likes,
        "lastModified": repo.modified,
        "createdAt": "2025-01-01T00:00:00.000Z",
        "tags": list(repo.tags),
        "gguf": {"total": repo.n_params, "architecture": repo.architecture, "context_length": 1024},
        "siblings": [_sibling(name, content, repo, with_sizes) for name, content in files.items()],
    }


def _sibling(name: str, content: bytes, repo: HubRepo, with_sizes: bool) -> dict[str, Any]:
    if not with_sizes:
        return {"rfilename": name}
    entry: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": _git_id(content)}
    if repo.is_large(name):
        entry["lfs"] = {"sha256": _sha256(content), "size": len(content), "pointerSize": 134}
    return entry


def _tree_entry(name: str, content: bytes, repo: HubRepo) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": _git_id(content)}
    if repo.is_large(name):
        entry["lfs"] = {"oid": _sha256(content), "size": len(content), "pointerSize": 134}
    return entry


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
