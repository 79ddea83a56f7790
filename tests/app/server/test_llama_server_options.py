"""``serve`` with llama-server's options, several addresses and a Unix socket; real servers, and bad input."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import httpx
import openai
import pytest

from app.cli.commands.llama_server_options import LlamaServerChoice
from app.client.server_process import ServerProcess
from app.library.hub_access import LibraryError
from core.values.errors import BadOption
from tests.app.server.conftest import MODEL, RunningServer
from tools.model_factory.gguf_factory import EMBER_DRAFT


@pytest.fixture(scope="module")
def as_llama_server(home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    template = folder / "template.jinja"
    template.write_text("{{ greeting }}{% for m in messages %} {{ m.content }}{% endfor %}", encoding="utf-8")
    keys = folder / "keys.txt"
    keys.write_text("# of the editor\nkey-one\n\n  key-two  \n", encoding="utf-8")
    options = [
        *("--api-key-file", str(keys)),
        *(
            "-c",
            "1024",
            "-np",
            "2",
            "-n",
            "7",
            "-ngl",
            "0",
            "-t",
            "2",
            "-fa",
            "auto",
            "--jinja",
            "--metrics",
            "--strict-models",
        ),
        *("--chat-template-file", str(template), "--chat-template-kwargs", '{"greeting": "Good day."}'),
        *("--host", str(folder / "endpoint.sock"), "-ctk", "f16", "-ctv", "f16", "--no-draft"),
    ]
    running = RunningServer(ServerProcess(options))
    yield running, folder / "endpoint.sock"
    running.close()


def test_the_options_mean_what_they_mean_there(as_llama_server):
    server, _ = as_llama_server
    props = server.http.get("/props").json()
    assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (2, 512)
    assert props["chat_template"].startswith("{{ greeting }}")
    slow = server.chat("Tell me.", max_tokens=None, extra_body={"ignore_eos": True})
    assert slow.usage.completion_tokens == 7
    told = server.http.post("/completion", json={"prompt": "Good day. Tell me.", "n_predict": 1}).json()
    assert told["tokens_evaluated"] == slow.usage.prompt_tokens
    other = server.chat(
        "Tell me.", max_tokens=1, extra_body={"chat_template_kwargs": {"greeting": "Good evening to you."}}
    )
    assert other.usage.prompt_tokens > slow.usage.prompt_tokens


@pytest.mark.parametrize(
    ("key", "status"), [("key-one", 200), ("key-two", 200), ("key", 401), ("# of the editor", 401), ("", 401)]
)
def test_each_key_of_the_file_lets_in(as_llama_server, key, status):
    server, _ = as_llama_server
    assert httpx.get(f"{server.url}/v1/models", headers={"x-api-key": key}).status_code == status


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (b"", "has no key"),
        (b"# none\n\n", "has no key"),
        (b"good\nsecret two\n", "line 2"),
        (b"\xff", "UTF-8"),
        (None, "read"),
    ],
)
def test_a_bad_file_of_keys_is_refused_and_not_shown(tmp_path, written, says):
    path = tmp_path / "keys.txt"
    if written is not None:
        path.write_bytes(written)
    with pytest.raises(BadOption, match=says) as caught:
        LlamaServerChoice(api_key_file=path).api_keys(None)
    assert "secret" not in str(caught.value)


def test_strict_names_are_those_of_models(as_llama_server):
    server, _ = as_llama_server
    with pytest.raises(openai.NotFoundError) as caught:
        server.chat(model="gpt-4o")
    assert caught.value.code == "model_not_found"
    assert "ember-q8_0" in caught.value.message
    assert server.chat(model="openai/ember-q8_0", max_tokens=1).model == MODEL


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' Python has no Unix sockets")
def test_a_unix_socket_serves_this_user_alone(as_llama_server):
    server, path = as_llama_server
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", headers=server.headers
    ) as client:
        assert client.get("/health").json()["model"] == MODEL
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
        assert client.post("/v1/chat/completions", json=body).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ctx", "512", "-c", "512"], "leave out one of them"),
        (["-c", "20", "-np", "4"], "too small for 4 slots"),
        (["-ctk", "f16", "-ctv", "q8_0"], "one type"),
        (["--chat-template", "chatml"], "the template itself"),
        (["--chat-template-file", "nowhere.jinja"], "cannot be read"),
        (["--chat-template-kwargs", "[1]"], "must be a JSON object"),
        (["--chat-template-kwargs", "{"], "no JSON"),
        (["--host", "127.0.0.1", "--host", "0.0.0.0"], "needs an API key"),
        (["--host", "/nowhere/here.sock"], "cannot listen on /nowhere/here.sock"),
    ],
)
def test_options_that_cannot_be_met_end_the_start_with_a_sentence(home, arguments, sentence):
    command = [sys.executable, "-m", "app", "serve", "--port", "0", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert sentence in " ".join(ended.stderr.split())


def test_a_model_of_the_hub_is_downloaded_once_and_then_served_without_asking_it(hub_server):
    hub_server.add("acme/fox-GGUF", {"fox-Q8_0.gguf": EMBER_DRAFT.read_bytes(), "fox-F16.gguf": b"GGUF"})
    choice = LlamaServerChoice(hf_repo="acme/fox-GGUF:Q8_0")
    path = choice.model(None)
    assert path is not None
    assert path.endswith("fox-Q8_0.gguf")
    n_asked = len(hub_server.asked)
    assert choice.model(None) == LlamaServerChoice(hf_repo="acme/fox-gguf:q8_0").model(None) == path
    assert len(hub_server.asked) == n_asked
    with pytest.raises(BadOption, match="leave out one"):
        choice.model("ember-q8_0")
    with pytest.raises(LibraryError, match="acme/none"):
        LlamaServerChoice(hf_repo="acme/none:Q8_0").model(None)
