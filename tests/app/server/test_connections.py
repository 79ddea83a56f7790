"""Many connections, slow ones, and what is said on one before there is a request: they starve nobody."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from copy import copy
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from app.server.http import http_server
from app.server.http.http_server import MAX_HEAD, HttpProtocol, HttpServer, allow_many_files
from app.server.http.listening_socket import listen
from app.server.http.sse import EventStream
from tests.app.server.conftest import RunningServer

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@contextlib.contextmanager
def opened(url: str, n: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections to a server, on each of which this was sent."""
    address = urlsplit(url)
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(n):
            made.append(stack.enter_context(socket.create_connection((address.hostname, address.port), timeout=30)))
            made[-1].sendall(sent)
        yield made


def test_a_thousand_idle_and_half_sent_connections_starve_nobody(server: RunningServer) -> None:
    allow_many_files()
    with opened(server.url, 700), opened(server.url, 500, HEAD):
        assert server.chat(max_tokens=4).usage.completion_tokens == 4


@pytest.fixture
def ended() -> threading.Event:
    """Set when the answer of /flood or /silent has ended."""
    return threading.Event()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, ended: threading.Event) -> Iterator[str]:
    """The address of a server that takes four connections and waits half a second for heads and readers."""
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(HttpProtocol, "head_seconds", 0.5)
    monkeypatch.setattr(HttpProtocol, "read_seconds", 0.5)
    goes_on = threading.Event()

    async def endless(request):
        async def pieces():
            yield b"begun"
            while not goes_on.is_set():
                await asyncio.sleep(0.01)

        return StreamingResponse(pieces())

    async def flood(request):
        async def pieces():
            try:
                while not goes_on.is_set():
                    yield bytes(1 << 20)
                    await asyncio.sleep(0)
            finally:
                ended.set()

        return StreamingResponse(pieces())

    async def silent(request):
        while (await request.receive())["type"] != "http.disconnect":
            pass
        ended.set()
        return PlainTextResponse("nobody hears it")

    routes = [Route(f"/{answer.__name__}", answer) for answer in (endless, flood, silent)]
    application = Starlette(routes=[Route("/", lambda request: PlainTextResponse("yes")), *routes])
    ready = threading.Event()
    listening = listen("127.0.0.1", 0)
    loops: list[asyncio.AbstractEventLoop] = []

    def on_started(server: HttpServer) -> None:
        loops.append(asyncio.get_running_loop())
        ready.set()

    served = HttpServer(application, on_started, goes_on.set)
    thread = threading.Thread(target=lambda: asyncio.run(served.serve([listening])))
    thread.start()
    assert ready.wait(60)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    loops[0].call_soon_threadsafe(served.stop)
    thread.join(30)
    listening.close()


def test_the_oldest_connection_on_which_nothing_happens_makes_room(small: str) -> None:
    with opened(small, 4) as idle:
        assert httpx.get(small).text == "yes"
        idle[0].settimeout(30)
        assert idle[0].recv(1) == b""


def test_where_all_connections_are_in_use_a_new_one_is_told(small: str) -> None:
    streams = []  # a forgotten iterator would close its stream
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(httpx.Client())
            answer = stack.enter_context(client.stream("GET", f"{small}/endless"))
            streams.append(answer.iter_raw())
            assert next(streams[-1]) == b"begun"
        answer = httpx.get(small)
        assert answer.status_code == 503
        assert "too many connections" in answer.json()["error"]["message"]


def test_a_head_that_does_not_end_is_given_up(small: str) -> None:
    with opened(small, 1, HEAD) as (half,), opened(small, 1) as (silent,):
        assert half.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert silent.recv(1) == b"", "nothing is said to one that said nothing"


def n_cancelled(server: RunningServer) -> float:
    ended = re.search(r'requests_ended_total\{reason="cancelled"\} (.+)', server.http.get("/metrics").text)
    return float(ended[1]) if ended else 0.0


def a_completion(server: RunningServer, **fields) -> bytes:
    body = json.dumps({"prompt": "Once", "ignore_eos": True, **fields}).encode()
    head = b"POST /completion HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
    return head % (server.process.api_key.encode(), len(body)) + body


def test_who_leaves_with_several_requests_at_once_ends_the_one_that_is_answered(server: RunningServer) -> None:
    request = a_completion(server, n_predict=900, stream=True)
    before = n_cancelled(server)
    with opened(server.url, 1, request + request) as (client,):
        assert client.recv(16).startswith(b"HTTP/1.1 200")
        server.wait_until(lambda state: state["active"] == 1)
    server.wait_until(lambda state: state["active"] == 0)
    assert n_cancelled(server) == before + 1


def test_who_leaves_while_another_request_waits_ends_the_one_that_is_answered(server: RunningServer) -> None:
    before = n_cancelled(server)
    with opened(server.url, 1, a_completion(server, n_predict=3_000)) as (client,):
        server.wait_until(lambda state: state["active"] == 1)
        client.sendall(a_completion(server, n_predict=1))
        assert server.state["active"] == 1
    server.wait_until(lambda state: state["active"] == 0)
    assert n_cancelled(server) == before + 1


@pytest.mark.parametrize("fields", [{}, {"stream": True}])
def test_who_leaves_behind_a_request_without_a_word_ends_it(server: RunningServer, fields: dict) -> None:
    before = n_cancelled(server)
    with opened(server.url, 1, a_completion(server, n_predict=3_000, **fields)) as (client,):
        client.shutdown(socket.SHUT_WR)
        server.wait_until(lambda state: state["active"] == 1)
    server.wait_until(lambda state: state["active"] == 0)
    assert n_cancelled(server) == before + 1


def test_who_leaves_after_an_interim_response_is_seen_by_the_next(small: str, ended: threading.Event) -> None:
    """As behind a relay that passes on only that nothing more comes, and reads what nobody takes."""
    with opened(small, 1, b"GET /silent HTTP/1.1\r\nHost: localhost\r\n\r\n") as (client,):
        client.shutdown(socket.SHUT_WR)
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert ended.wait(60)


@pytest.mark.parametrize("fields", [{}, {"stream": True}])
def test_who_sends_no_more_behind_a_request_is_answered(server: RunningServer, fields: dict) -> None:
    with opened(server.url, 1, a_completion(server, n_predict=40, **fields)) as (connection,):
        connection.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        said = answer.read().decode()
        assert connection.recv(1) == b"", "nothing more can come"
    assert (answer.status, answer.will_close) == (200, True)
    last = said.rpartition("data: ")[2]
    assert json.loads(last)["tokens_predicted"] == 40


@pytest.mark.parametrize("loop", ["uvloop's", "asyncio's"])
def test_who_sends_no_more_gets_an_answer_that_is_ready_at_once(request: pytest.FixtureRequest, loop: str) -> None:
    url = request.getfixturevalue("server").url if loop == "uvloop's" else request.getfixturevalue("small")
    for _ in range(20):
        with opened(url, 1, b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n") as (connection,):
            connection.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            assert answer.read()
            assert connection.recv(1) == b""
        assert answer.status in {401, 404}


def test_one_who_never_reads_the_answer_is_cut_off(small: str, ended: threading.Event) -> None:
    with opened(small, 1, b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        assert ended.wait(60)
        assert httpx.get(small).text == "yes", "others are served meanwhile"


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def no_application(scope, receive, send) -> None:
    await asyncio.Event().wait()


class ClosedWire(Wire):
    """Is closed, as uvloop's where the client has reset it, and not yet said to be lost."""

    def write(self, data: bytes) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")


def said_to(*parts: bytes, to=no_application, over: type[Wire] = Wire) -> Wire:
    """Return the wire after a client has sent these parts; ``to`` has each of its turns in between."""

    async def run() -> Wire:
        config = uvicorn.Config(to, http=HttpProtocol, log_config=None)
        config.load()
        protocol, wire = HttpProtocol(config, ServerState(), {}), over()
        protocol.connection_made(wire)
        for part in parts:
            if not wire.is_closed:
                protocol.data_received(part)
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        said = copy(wire)
        for task in protocol.tasks:
            task.cancel()
        return said

    return asyncio.run(run())


def test_a_head_that_begins_behind_a_request_is_given_up_once_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time counts from the end of the answer before it, however long that took."""
    monkeypatch.setattr(HttpProtocol, "head_seconds", 0.2)
    said: list[tuple[float, bytes]] = []

    class Timed(Wire):
        def write(self, data: bytes) -> None:
            said.append((asyncio.get_running_loop().time(), data))

    async def late(scope, receive, send) -> None:
        await asyncio.sleep(1.5 * HttpProtocol.head_seconds)
        await PlainTextResponse("late")(scope, receive, send)

    async def run() -> None:
        config = uvicorn.Config(late, http=HttpProtocol, log_config=None)
        config.load()
        protocol, wire = HttpProtocol(config, ServerState(), {}), Timed()
        protocol.connection_made(wire)
        protocol.data_received(HEAD + b"\r\n" + HEAD)
        async with asyncio.timeout(10):
            while not wire.is_closed:
                await asyncio.sleep(0.05)
                protocol.data_received(b"X")  # and so on, without an end

    asyncio.run(run())
    (answered, answer), *_, (refused, refusal) = said
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert refusal.startswith(b"HTTP/1.1 408 ")
    assert refused - answered >= HttpProtocol.head_seconds


def test_an_offer_to_speak_another_protocol_is_left_out_and_the_body_is_read() -> None:
    seen: list[tuple[str, bytes]] = []

    async def application(scope, receive, send) -> None:
        body, has_more = b"", True
        while has_more:
            message = await receive()
            body, has_more = body + message["body"], message["more_body"]
        seen.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    offer = b"Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n"
    whole = b"POST /whole HTTP/1.1\r\n" + offer + b'Content-Length: 7\r\n\r\n{"a":1}'
    chunked = b"POST /chunked HTTP/1.1\r\n" + offer + b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n'
    after = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n"
    for size in (1, 50, 10_000):
        parts = [sent[i : i + size] for sent in (whole, chunked, after) for i in range(0, len(sent), size)]
        said_to(*parts, to=application)
    assert seen == [("/whole", b'{"a":1}'), ("/chunked", b'{"a":1}'), ("/after", b"")] * 3


def test_a_websocket_is_refused_with_the_status_at_which_codex_asks_without_one() -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YQ==\r\n\r\n"
    wire = said_to(b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n" + offer)
    assert wire.is_closed
    assert wire.written.startswith(b"HTTP/1.1 426 Upgrade Required\r\n")
    assert b"\r\nconnection: upgrade, close\r\nupgrade: HTTP/1.1\r\n" in wire.written
    assert b'"code": "no_websockets"' in wire.written


def test_only_a_websockets_handshake_is_refused_as_one() -> None:
    methods = list[str]()

    async def application(scope, receive, send) -> None:
        methods.append(scope["method"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    offer = b"Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    said_to(b"GET / HTTP/1.1\r\n" + offer + b"\r\n", to=application)
    post = b"POST / HTTP/1.1\r\n" + offer + b"Sec-WebSocket-Key: YQ==\r\nContent-Length: 2\r\n\r\n{}"
    said_to(post, to=application)
    assert methods == ["GET", "POST"]


BEGIN = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nX: "


def test_a_head_without_an_end_is_refused_and_long_ones_with_an_end_are_read() -> None:
    wire = said_to(BEGIN % 1, *[b"a" * 100_000] * (MAX_HEAD // 100_000 + 1))
    head, _, body = wire.written.partition(b"\r\n\r\n")
    assert wire.is_closed
    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert json.loads(body)["error"]["code"] == "headers_too_large"
    head = BEGIN % (2 * MAX_HEAD) + b"a" * 50_000 + b"\r\n\r\n"
    wire = said_to(*[head[i : i + 10_000] for i in range(0, len(head), 10_000)], *[b"b" * 200_000] * 10)
    assert (wire.written, wire.is_closed) == (b"", False)
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (MAX_HEAD // 2)
    wire = said_to(head, b"a\r\n\r\n", head, b"a\r\n\r\n", head, b"a\r\n\r\n")
    assert (wire.written, wire.is_closed) == (b"", False)


def test_an_answer_on_a_connection_that_was_closed_a_moment_ago_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    said_to(HEAD + b"\r\n", to=PlainTextResponse("nobody reads this"), over=ClosedWire)
    assert not caplog.records


def test_what_several_streams_bring_at_once_is_sent_when_all_of_it_is_made() -> None:
    """A client that waits for them all then wakes up once."""
    done: list[str] = []

    class NotingWire(Wire):
        def write(self, data: bytes) -> None:
            done.append("sent")

    async def run() -> None:
        step = asyncio.Event()

        async def stream(scope, receive, send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await step.wait()
            done.append("made")
            await send({"type": "http.response.body", "body": b"a piece", "more_body": True})
            await asyncio.Event().wait()

        config = uvicorn.Config(stream, http=HttpProtocol, log_config=None)
        config.load()
        protocols = [HttpProtocol(config, ServerState(), {}) for _ in range(3)]
        for protocol in protocols:
            protocol.connection_made(NotingWire())
            protocol.data_received(HEAD + b"\r\n")
        await asyncio.sleep(0.01)
        done.clear()
        step.set()
        await asyncio.sleep(0.01)
        for task in [task for protocol in protocols for task in protocol.tasks]:
            task.cancel()

    asyncio.run(run())
    assert done == ["made"] * 3 + ["sent"] * 3


def test_a_stream_that_takes_no_turns_is_not_kept_until_its_end() -> None:
    """Only what is sent tells a connection that the client reads too slowly."""
    sizes: list[int] = []

    class Noting(Wire):
        def write(self, data: bytes) -> None:
            sizes.append(len(data))

    async def stream(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(100):
            await send({"type": "http.response.body", "body": bytes(10_000), "more_body": number < 99})

    said_to(HEAD + b"\r\n", to=stream, over=Noting)
    assert sum(sizes) > 100 * 10_000
    assert max(sizes) < 100_000


def test_only_the_head_and_the_end_of_a_stream_pass_what_is_around_the_application() -> None:
    """Each layer would cost as much for every token as for a whole answer."""
    seen: list[dict[str, object]] = []

    async def pieces():
        for piece in (b"one, ", b"two, ", b"three"):
            yield piece

    async def around(scope, receive, send) -> None:
        async def noting(message) -> None:
            seen.append(message)
            await send(message)

        await EventStream(pieces())(scope, receive, noting)

    wire = said_to(HEAD + b"\r\n", to=around)
    assert [message.get("body") for message in seen] == [None, b""]
    assert wire.written.endswith(b"5\r\none, \r\n5\r\ntwo, \r\n5\r\nthree\r\n0\r\n\r\n")


def test_who_leaves_within_a_body_leaves_no_error(server: RunningServer) -> None:
    head = f"Host: localhost\r\nAuthorization: Bearer {server.process.api_key}\r\nContent-Length: 90\r\n"
    json_body, form = "application/json\r\n\r\n{", "multipart/form-data; boundary=x\r\n\r\n--x\r\n"
    for path, body in (
        ("/slipstream/library/downloads/clear", json_body),
        ("/v1/chat/completions", json_body),
        ("/v1/files", form),
    ):
        with opened(server.url, 1, f"POST {path} HTTP/1.1\r\n{head}Content-Type: {body}".encode()) as (leaving,):
            leaving.shutdown(socket.SHUT_WR)
            while leaving.recv(4_096):
                pass
    log = server.http.get("/slipstream/log", params={"lines": 300}).json()["lines"]
    assert not any("ClientDisconnect" in line for line in log)


def test_who_comes_in_while_the_server_leaves_is_sent_away_like_the_others() -> None:
    async def run() -> set[object]:
        server = HttpServer(Starlette(), lambda server: None, lambda: None)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        with listen("127.0.0.1", 0) as listening:
            await server.startup([listening])
            with socket.create_connection(listening.getsockname()):
                for _ in range(3):  # it is let in, and not known yet
                    await asyncio.sleep(0)
                await server.shutdown([listening])
        return {*server.server_state.connections}

    assert asyncio.run(run()) == set()


def test_who_waits_looks_at_the_time_once_a_second_and_leaves_at_once() -> None:
    """Ten looks a second keep a processor from resting."""
    looks: list[int] = []

    class Noting(HttpServer):
        async def on_tick(self, counter: int) -> bool:
            looks.append(counter)
            return await super().on_tick(counter)

    async def run() -> None:
        server = Noting(Starlette(), lambda server: None, lambda: None)
        with listen("127.0.0.1", 0) as listening:
            serving = asyncio.create_task(server.serve([listening]))
            await asyncio.sleep(0.4)
            server.stop()
            await asyncio.sleep(0.02)
            assert server.server_state.is_leaving
            await serving

    asyncio.run(run())
    assert len(looks) == 2
