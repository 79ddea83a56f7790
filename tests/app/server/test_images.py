"""Images in requests: seen by the model, counted, cached, and refused with a sentence where they cannot be."""

from __future__ import annotations

import asyncio
import base64
import http.server
import shutil
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import ollama
import openai
import pytest

from app.server.calls.chat_body import SentImage
from app.server.chat.images import MAX_IMAGE_BYTES, fetch_image, read_images
from app.server.http.errors import ApiError
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from models.formatting.program import IN_WINDOW
from tests.app.server.conftest import RunningServer
from tests.support.images import MARK, picture, png_header, reference
from tests.support.prompts import EMBER, chat
from tools.model_factory.projector_factory import projector

_N = 16


@pytest.fixture(scope="module")
def seeing(home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose model has a projector beside it."""
    folder = tmp_path_factory.mktemp("seeing")
    model = folder / "ember-sees-q8_0.gguf"
    shutil.copy(EMBER, model)
    shutil.copy(projector("gemma3"), folder / "mmproj-F16.gguf")
    with RunningServer("--model", str(model), "--no-draft", "--ctx", "1024") as running:
        yield running


def data_url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def part(url: str) -> dict:
    return {"type": "image_url", "image_url": {"url": url}}


def ask(server: RunningServer, *content: dict | str, **fields):
    parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    fields = {"max_tokens": _N, "temperature": 0, "messages": [{"role": "user", "content": parts}]} | fields
    return server.client.chat.completions.create(model=server.state["model"], **fields)


def test_answers_what_llama_cpp_answers_and_reads_the_image_once(seeing: RunningServer) -> None:
    file = picture(seed=3)
    expected = reference(EMBER, projector("gemma3"), chat(f"Look: {MARK} What is it?"), (file,), _N)
    for n_most_new in (1024, 1):
        reply = ask(seeing, "Look: ", part(data_url(file)), " What is it?")
        assert reply.choices[0].message.content == expected
        usage = reply.usage
        assert usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens <= n_most_new
    assert usage.prompt_tokens > 16  # of the image
    assert seeing.http.get("/props").json()["modalities"]["vision"]


@pytest.mark.parametrize(
    "form",
    [
        lambda url: {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
        lambda url: {"type": "image_url", "image_url": url},
        lambda url: {"type": "input_image", "image_url": url, "detail": "auto"},
        lambda url: {"type": "image_url", "image_url": {"url": url.partition(",")[2]}},
    ],
    ids=["detail", "plain", "input_image", "raw"],
)
def test_takes_images_in_the_forms_that_clients_send(seeing: RunningServer, form) -> None:
    url = data_url(picture(seed=4))
    replies = [ask(seeing, "What is this? ", one).choices[0].message.content for one in (form(url), part(url))]
    assert replies[0] == replies[1]
    content = [{"type": "input_text", "text": "What is this? "}, {"type": "input_image", "image_url": url}]
    fields = {"temperature": 0, "max_output_tokens": _N, "store": False}
    said = [{"role": "user", "content": content}]
    assert seeing.client.responses.create(model=seeing.state["model"], input=said, **fields).output_text == replies[0]


def test_images_count_where_tokens_are_counted(seeing: RunningServer) -> None:
    url, data = data_url(picture()), base64.b64encode(picture()).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    bodies = {
        "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": [block]}]},
        "/v1/chat/completions/input_tokens": {"messages": [{"role": "user", "content": [part(url)]}]},
        "/v1/responses/input_tokens": {
            "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]
        },
    }
    counted = [seeing.http.post(path, json=body).json()["input_tokens"] for path, body in bodies.items()]
    assert counted == [ask(seeing, part(url)).usage.prompt_tokens] * 3
    body = bodies["/v1/chat/completions/input_tokens"]
    read = seeing.http.post("/tokenize", json=body).json()
    assert read["count"] == len(read["tokens"]) == counted[0]
    assert read["tokens"].count(-1) == 16, "one for each of the image's rows"
    assert min(read["tokens"]) == -1


def test_a_response_names_an_image_that_was_uploaded_and_goes_on_from_it(seeing: RunningServer) -> None:
    file = picture(seed=4)
    uploaded = seeing.client.files.create(file=("seen.png", file), purpose="vision")
    usual = {"model": seeing.state["model"], "temperature": 0, "max_output_tokens": _N}
    answers = []
    for where in ({"file_id": uploaded.id}, {"image_url": data_url(file)}):
        parts = [{"type": "input_text", "text": "What is this? "}, {"type": "input_image", **where}]
        first = seeing.client.responses.create(input=[{"role": "user", "content": parts}], **usual)
        second = seeing.client.responses.create(input="And now?", previous_response_id=first.id, **usual)
        answers.append((first.output_text, second.output_text, second.usage.input_tokens))
    assert answers[0] == answers[1]
    seeing.client.files.delete(uploaded.id)
    with pytest.raises(openai.BadRequestError, match="no file") as gone:
        seeing.client.responses.create(
            input=[{"role": "user", "content": [{"type": "input_image", "file_id": uploaded.id}]}], **usual
        )
    assert (gone.value.param, gone.value.code) == ("input", "file_not_found")


def test_ollamas_client_shows_images(seeing: RunningServer) -> None:
    file, name = picture(seed=3), seeing.state["model"]
    parts = part(data_url(file)), "What is it?"
    expected = ask(seeing, *parts).choices[0].message.content
    options = {"temperature": 0, "num_predict": _N}
    with ollama.Client(host=seeing.url, headers=seeing.headers) as client:
        message = {"role": "user", "content": "What is it?", "images": [file]}
        assert client.chat(name, [message], options=options).message.content == expected
        assert client.generate(name, "What is it?", images=[file], options=options).response == expected
        assert "vision" in client.show(name).capabilities
        for system in ("", "Be brief."):
            with pytest.raises(ollama.ResponseError, match="images: The image is damaged"):
                client.generate(name, "What is it?", system=system, images=[file[:200]])


def test_images_stay_in_their_order(seeing: RunningServer) -> None:
    marked = ask(seeing, f"{MARK} ", part(data_url(picture())), " <image> <start_of_image>")
    assert marked.choices[0].finish_reason in ("stop", "length"), "a text that looks like a mark is text"
    one, other = (part(data_url(picture(seed))) for seed in (5, 6))
    first = ask(seeing, "First ", one, " then ", other)
    turned = ask(seeing, "First ", other, " then ", one)
    again = ask(seeing, "First ", one, " then ", other)
    assert again.choices[0].message.content == first.choices[0].message.content
    assert again.usage.prompt_tokens_details.cached_tokens == first.usage.prompt_tokens - 1
    assert turned.usage.prompt_tokens_details.cached_tokens < 16


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("data:image/png;base64,not base64!", "base64"),
        ("data:image/png;base64", "comma"),
        ("data:image/png,%89PNG", "base64"),
        (data_url(b"no image at all"), "not an image"),
        (data_url(picture()[:200]), "damaged"),
        (data_url(png_header(60_000, 60_000)), "million"),
        (data_url(bytes(MAX_IMAGE_BYTES + 3)), "20 MB"),
        ("file:///etc/passwd", "data URL"),
        ("/etc/passwd", "data URL"),
        ("http://127.0.0.1/image.png", "--allow-remote-images"),
    ],
    ids=["base64", "comma", "percent", "text", "cut", "bomb", "bytes", "file", "path", "remote"],
)
def test_refuses_hostile_images_by_name(seeing: RunningServer, url: str, words: str) -> None:
    with pytest.raises(openai.BadRequestError, match=words) as raised:
        ask(seeing, "Look: ", part(data_url(picture())), part(url), stream=True)
    assert (raised.value.param, raised.value.code) == ("messages[0].content[2]", "invalid_image")


def test_a_model_without_projector_says_what_helps(server: RunningServer) -> None:
    with pytest.raises(openai.BadRequestError, match="--mmproj") as raised:
        ask(server, part(data_url(picture())))
    assert (raised.value.param, raised.value.code) == ("messages[0].content[0]", "images_not_supported")
    assert not server.http.get("/props").json()["modalities"]["vision"]


def test_an_engine_that_dies_while_it_reads_an_image_comes_back(seeing: RunningServer) -> None:
    url = data_url(picture(seed=8, width=900, height=900))
    ended: list[object] = []

    def call() -> None:
        try:
            ended.append(ask(seeing, part(url), " What is it?", max_tokens=400).choices[0].finish_reason)
        except openai.APIStatusError as error:
            ended.append(error.status_code)

    caller = threading.Thread(target=call)
    caller.start()
    seeing.wait_until(lambda state: state["active"] == 1 or ended)
    seeing.engine.kill()
    caller.join(60)
    assert len(ended) == 1
    assert ended[0] in ("stop", "length", 500, 503)
    seeing.wait_until(lambda state: state["phase"] == "ready")
    assert ask(seeing, part(url), " What is it?").usage.prompt_tokens > 16


class _Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/picture")
            self.end_headers()
            return
        self.send_response({"/picture": 200, "/large": 200, "/choices": 300}.get(self.path, 404))
        self.end_headers()
        self.wfile.write(bytes(MAX_IMAGE_BYTES + 1) if self.path == "/large" else picture())

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_fetches_an_image_from_an_address_that_may_be_asked_or_says_why_not(web: str) -> None:
    for path in ("/picture", "/moved"):
        assert asyncio.run(fetch_image(web + path, lambda address: True)) == picture()
    for path, words in (("/nothing", "404"), ("/choices", "300"), ("/large", "20 MB")):
        with pytest.raises(BadRequest, match=words):
            asyncio.run(fetch_image(web + path, lambda address: True))


def test_in_the_window_an_image_of_the_web_is_refused_without_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    model = cast("LoadedModel", SimpleNamespace(mmproj="mmproj.gguf"))
    monkeypatch.setenv(IN_WINDOW, "1")
    with pytest.raises(ApiError, match=r"send it as a data URL\.$"):
        asyncio.run(read_images([SentImage("messages[0]", "https://example.com/a.png")], model, allows_remote=False))


@pytest.mark.parametrize(
    "url", ["http://localhost/a.png", "http://[::1]/a.png", "http://10.0.0.1/a.png", "http://169.254.169.254/latest"]
)
def test_fetches_nothing_from_this_machine_or_its_network(url: str) -> None:
    with pytest.raises(BadRequest, match="public addresses"):
        asyncio.run(fetch_image(url))
