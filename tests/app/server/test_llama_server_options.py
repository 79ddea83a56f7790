"""``serve`` with llama-server's options, several addresses and a Unix socket; real servers, and bad input."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from typer.main import get_group

from app.cli.commands.llama_server_options import LlamaServerChoice
from app.cli.commands.llama_server_switches import SWITCHES, LlamaServerSwitch
from app.cli.commands.llama_server_variables import VARIABLES
from app.cli.main import build, main
from app.client.server_process import serve_command, serve_environment
from app.doctor.report import LlamaSystem
from app.environment.exit_codes import ExitCode
from app.library.errors import LibraryError
from app.server.templates.builtin_templates import BUILTIN_TEMPLATES
from app.settings.server_settings import ServerSettings
from core.values.engine_options import Device
from core.values.errors import BadOption
from models.formatting.program import PROGRAM_FOLDER
from tests.app.server.conftest import MODEL, RunningServer
from tests.support.commands import ran
from tests.support.fork_server import forked
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
        *[
            "-c", "1024", "-np", "2", "-n", "7", "-ngl", "0", "-t", "2", "-fa", "auto", "--jinja", "--metrics",
            "--strict-models",
        ],
        *("--temp", "0", "--top-k", "7", "--no-webui"),
        *("--chat-template-file", str(template), "--chat-template-kwargs", '{"greeting": "Good day."}'),
        *("--host", str(folder / "endpoint.sock"), "-ctk", "f16", "-ctv", "f16", "--no-draft"),
    ]  # fmt: skip
    with RunningServer(*options) as running:
        yield running, folder / "endpoint.sock"


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
    with pytest.raises(openai.NotFoundError, match="ember-q8_0") as caught:
        server.chat(model="gpt-4o")
    assert caught.value.code == "model_not_found", "strict names are those of models"
    assert server.chat(model="openai/ember-q8_0", max_tokens=1).model == MODEL


@pytest.mark.parametrize(
    ("key", "status"), [("key-one", 200), ("key-two", 200), ("key", 401), ("# of the editor", 401), ("", 401)]
)
def test_each_key_of_the_file_lets_in(as_llama_server, key, status):
    server, _ = as_llama_server
    assert httpx.get(f"{server.url}/v1/models", headers={"x-api-key": key}).status_code == status


def test_a_key_without_a_name_says_how_one_that_manages_is_made(as_llama_server):
    server, _ = as_llama_server
    refused = httpx.post(f"{server.url}/models/unload", json={"model": MODEL}, headers={"x-api-key": "key-two"})
    assert refused.status_code == 403
    assert "slipstream keys add NAME --manage makes one that may." in refused.json()["error"]["message"]


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
        LlamaServerChoice(api_key_file=path).api_keys(())
    assert "secret" not in str(caught.value)


def test_the_servers_sampling_is_for_requests_that_say_nothing(as_llama_server):
    server, _ = as_llama_server
    params = server.http.get("/props").json()["default_generation_settings"]["params"]
    assert (params["temperature"], params["top_k"], params["top_p"]) == (0, 7, 0.95)
    shown = server.http.post("/api/show", json={"model": MODEL}).json()["parameters"]
    assert [line.split() for line in shown.splitlines() if "temp" in line] == [["temperature", "0.0"]]

    def told(**fields) -> str:
        return server.http.post("/completion", json={"prompt": "Once", "n_predict": 7, **fields}).json()["content"]

    assert told(seed=1) == told(seed=2)
    assert len({told(seed=seed, temperature=5, top_k=0, top_p=1, min_p=0) for seed in range(4)}) > 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' Python has no Unix sockets")
def test_a_unix_socket_serves_this_user_alone(as_llama_server):
    server, path = as_llama_server
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with at_socket(path, "localhost", server.headers) as client:
        assert client.get("/health").json()["model"] == MODEL
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
        assert client.post("/v1/chat/completions", json=body).status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' Python has no Unix sockets")
def test_whatever_name_a_client_makes_up_for_a_unix_socket_is_let_in_without_a_key(home, tmp_path):
    path = tmp_path / "endpoint.sock"
    command = [*serve_command(["--on-demand"]), "--host", str(path)]
    command[command.index("127.0.0.1")] = str(tmp_path / "other.sock")
    with subprocess.Popen(
        forked(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROGRAM_FOLDER
    ) as running:
        assert b"READY" in running.stdout.readline()
        for name in ("made-up.example", "unix", "sockets"):
            with at_socket(path, name) as client:
                assert client.get("/health").status_code == 200
        running.stdin.close()


def at_socket(path, host: str, headers: dict[str, str] | None = None) -> httpx.Client:
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url=f"http://{host}", headers=headers)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ctx", "512", "-c", "512"], "leave out one of them"),
        (["-c", "20", "-np", "4"], "too small for 4 slots"),
        (["-ctk", "f16", "-ctv", "q8_0"], "one type"),
        (["--chat-template", "chat ml"], "called 'chat ml'. It takes jinja text, or one of these names: bailing,"),
        (["--chat-template", "{{ messages"], "--chat-template cannot be used: line 1: unexpected end of template"),
        (["--chat-template", "{% if 1 %}\n{{ nobody() }}{% endif %}"], "line 2: 'nobody' is undefined"),
        (["--slot-save-path", "nowhere"], "nowhere, which is no folder"),
        (["--slot-save-path", "a" * 300], "which is no folder"),
        (["--lora", f"{'a' * 300}:0.5"], "which is no file"),
        (["--chat-template-file", "nowhere.jinja"], "cannot be read"),
        (["--chat-template-kwargs", "[1]"], "must be a JSON object"),
        (["--chat-template-kwargs", "{"], "no JSON"),
        (["--host", "127.0.0.1", "--host", "0.0.0.0"], "needs an API key"),
        (["--api-key", "no-text-\udcff"], "only ASCII letters"),
        (["--api-key", "se€cret"], "only ASCII letters"),
        (["--api-key", "two words"], "only ASCII letters"),
        (["--api-key", " "], "at least one character"),
    ],
)
def test_options_that_cannot_be_met_end_the_start_with_a_sentence(typed, arguments, sentence):
    code, _, err = typed("serve", "--port", "0", *arguments)
    assert code != 0
    assert sentence in " ".join(err.split())


def test_a_socket_that_cannot_be_made_ends_the_start_with_a_sentence(home):
    done = ran("serve", "--host", "/nowhere/here.sock")
    assert done.returncode != 0
    assert "cannot listen on /nowhere/here.sock" in done.stderr


def lines_of(name: str) -> list[list[str]]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


LISTED = [name for line in lines_of("llama_server_options.txt") for name in line]


def all_of(settings: ServerSettings) -> dict[str, Any]:
    """Return the settings, with the engine's options among them."""
    return {one.name: getattr(part, one.name) for part in (settings.engine, settings) for one in fields_of(part)}


@pytest.fixture
def served(monkeypatch) -> Callable[..., ServerSettings]:
    """Gives the settings of the server that ``serve`` with some options would run."""
    found: list[ServerSettings] = []
    monkeypatch.setattr("app.server.main.run_server", lambda settings: found.append(settings) or 0)
    monkeypatch.delenv("SLIPSTREAM_API_KEY", raising=False)
    devices = tuple(Device(name, "", "gpu") for name in ("CUDA0", "CUDA1"))
    monkeypatch.setattr("app.doctor.checks.check_llama", lambda: LlamaSystem(devices=devices))

    def serve(*options: str) -> ServerSettings:
        assert main(["serve", *options]) == 0
        return found[-1]

    return serve


def test_every_option_of_llama_server_is_known_by_all_of_its_names():
    (command,) = get_group(build(is_pretty=False, typed=["serve"])).commands.values()
    names = [name for option in command.params for name in (*option.opts, *option.secondary_opts)]
    assert set(LISTED) - {"-h", "--help"} <= set(names)
    assert [name for name, n in Counter(names).items() if n > 1] == []


def values_of(switch: LlamaServerSwitch) -> list[str]:
    return ["7"] * len(switch.metavar.split())


def test_what_changes_nothing_is_taken_with_a_word(served, capsys):
    taken = [switch for switch in SWITCHES if switch.is_taken]
    as_it_is = [switch for switch in SWITCHES if switch.same]
    served(
        *(part for switch in taken for part in (switch.names[-1], *values_of(switch))),
        *(part for switch in as_it_is for part in (switch.names[-1], switch.same[0])),
    )
    words = capsys.readouterr().err.splitlines()
    for switch in taken:
        assert f"{switch.names[-1]} changes nothing here: {switch.why}." in words
    for switch in as_it_is:
        assert f"{switch.names[-1]} {switch.same[0]} changes nothing here: it is so anyway." in words


def test_what_would_change_something_is_refused_with_what_to_do_instead(capsys):
    for switch in SWITCHES:
        if not switch.is_taken:
            name = switch.names[-1]
            assert main(["serve", name, *values_of(switch)]) == ExitCode.USAGE
            assert f"{name} is llama-server's and not followed here: {switch.why}." in capsys.readouterr().err


def test_options_of_sampling_are_what_requests_get_that_say_nothing(served):
    given = "--temp .3 --top-k 7 --top-p .9 --min-p 0 --repeat-penalty 1.1 --typical .5 --top-nsigma 2 --ignore-eos"
    more = "--mirostat 2 --mirostat-ent 4 --mirostat-lr .2 --dry-multiplier .8 --repeat-last-n -1 -l 7+1 -s 5"
    assert served(*given.split(), *more.split()).sampling == {
        "temperature": 0.3, "top_k": 7, "top_p": 0.9, "min_p": 0.0, "repeat_penalty": 1.1, "typical_p": 0.5,
        "top_n_sigma": 2.0, "ignore_eos": True, "mirostat": 2, "mirostat_tau": 4.0, "mirostat_eta": 0.2,
        "dry_multiplier": 0.8, "repeat_last_n": -1, "logit_bias": {"7": 1.0}, "seed": 5,
    }  # fmt: skip
    assert served("--seed", "-1").sampling == served().sampling == {}


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("-fa --mlock --no-mmap", {"flash_attention": "on", "mlock": True, "mmap": False}),
        ("-fa off -cmoe", {"flash_attention": "off", "n_cpu_moe": 512}),
        ("--cpu-moe 3 -t -1 -np -1", {"n_cpu_moe": 3, "n_threads": None, "n_slots": 4}),
        ("--mmap", {"mmap": True}),
        ("-lm auto", {"mmap": None, "mlock": False}),
        ("-lm mmap+mlock", {"mmap": True, "mlock": True}),
        ("-lm none", {"mmap": False, "mlock": False}),
        ("-ngl all", {"n_gpu_layers": 512}),
        ("-ngl auto -dev CUDA0,CUDA1", {"n_gpu_layers": None, "devices": ("CUDA0", "CUDA1")}),
        ("-dev none", {"n_gpu_layers": 0, "devices": ()}),
        ("-cram 512", {"cache_ram": 512 << 20}),
        ("-cram -1", {"cache_ram": None}),
        ("--cache-ram 4G --kv-unified-per-slot 2048", {"cache_ram": 4 << 30, "n_ctx": 2048}),
        ("--host 127.0.0.1,::1", {"hosts": ("127.0.0.1", "::1")}),
        ("--cors-origins https://a.b,https://c.d", {"cors": ("https://a.b", "https://c.d")}),
        ("--sleep-idle-seconds 60 --models-max 0", {"idle_unload": 60.0, "models_max": 1_000}),
        ("--sleep-idle-seconds -1 --predict 9", {"idle_unload": None, "n_predict": 9}),
        ("--cors-origins localhost --props", {"cors": ("localhost",), "allows_props": True}),
        ("--chat-template zephyr", {"chat_template": BUILTIN_TEMPLATES["zephyr"]}),
        ("--spec-type none", {"speculation": "off"}),
        ("--spec-type ngram-simple --no-mmproj-auto", {"speculation": "auto", "uses_projector": False}),
        ("-rea on", {"template_variables": {"enable_thinking": True, "thinking": True}, "reasoning_budget": -1}),
        ("-rea off", {"template_variables": {"enable_thinking": False, "thinking": False}, "reasoning_budget": 0}),
        ("--reasoning-effort high", {"template_variables": {"reasoning_effort": "high"}}),
        ("--no-reasoning-preserve", {"template_variables": {"preserve_reasoning": False}}),
    ],
)
def test_options_have_their_meaning_from_there(served, options, fields):
    settings = served(*options.split())
    assert {name: all_of(settings)[name] for name in fields} == fields


def test_a_template_that_refuses_one_chat_may_take_others(served):
    source = "{% if messages|length < 2 %}{{ raise_exception('a system turn') }}{% endif %}{{ messages[1].content }}"
    assert served("--chat-template", source).engine.chat_template == source


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("-ngl most", "a number of layers, all, or auto"),
        ("-lm swap", "one of auto, none"),
        ("-rea maybe", "on, off or auto"),
        ("--reasoning-effort much", "one of default, none"),
        ("-hff a.gguf", "a file of a repository"),
        ("--temp 900", "temperature must be between"),
        ("--cache-ram much", "no size for --cache-ram"),
        ("--split-mode row", "layers are split among GPUs"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(served, capsys, options, sentence):
    assert main(["serve", *options.split()]) == ExitCode.USAGE
    assert sentence in capsys.readouterr().err


def test_every_variable_of_llama_server_stands_for_its_option_but_not_for_our_own_server(monkeypatch):
    of = {variable: name for name, variable in VARIABLES.items()}
    listed = lines_of("llama_server_variables.txt")
    assert {variable for variable, *_ in listed} == set(of)
    for variable, *names in listed:
        assert of[variable] in names
    (command,) = get_group(build(is_pretty=False, typed=["serve"])).commands.values()
    assert set(VARIABLES) <= {name for option in command.params for name in option.opts}
    monkeypatch.setenv("LLAMA_ARG_HOST", "0.0.0.0")
    monkeypatch.setenv("LLAMA_API_KEY", "theirs")
    assert not [name for name in serve_environment("ours") if name.startswith("LLAMA_")]


@pytest.mark.parametrize(
    ("variables", "options", "fields"),
    [
        ("CTX_SIZE=4096 N_PARALLEL=2 THREADS=3", "", {"n_ctx": 2048, "n_slots": 2, "n_threads": 3}),
        ("CTX_SIZE=4096 N_PARALLEL=2", "-c 1024", {"n_ctx": 512, "n_slots": 2}),
        ("CTX_SIZE=4096", "-c1024", {"n_ctx": 256}),
        ("CTX_SIZE=4096", "--ctx 64", {"n_ctx": 64}),
        ("MODEL=one HF_REPO=acme/two", "-m three", {"model": "three"}),
        ("MODEL=one ALIAS=a,b", "--alias c", {"model": "one", "aliases": (("c", ""),)}),
        ("HOST=127.0.0.1,::1 PORT=9999", "", {"hosts": ("127.0.0.1", "::1"), "port": 9999}),
        ("FLASH_ATTN=1 CACHE_RAM=512 TOP_K=7", "", {"flash_attention": "on", "cache_ram": 512 << 20}),
        ("FLASH_ATTN=off CPU_MOE=true", "", {"flash_attention": "off", "n_cpu_moe": 512}),
        ("CPU_MOE=0 MMPROJ_AUTO=0", "", {"n_cpu_moe": None, "uses_projector": False}),
        ("NO_MMPROJ_AUTO=1", "", {"uses_projector": False}),
        ("REASONING_PRESERVE=false", "", {"template_variables": {"preserve_reasoning": False}}),
        ("REASONING=enabled", "--no-reasoning-preserve", {"reasoning_budget": -1}),
        ("RERANKING=on CORS_ORIGINS=https://a.b", "", {"pooling": "rank", "cors": ("https://a.b",)}),
        ("CTX_SIZE= MODEL= JINJA= N_PREDICT=-1", "", {"n_ctx": None, "model": None, "n_predict": None}),
    ],
)
def test_variables_are_options_that_nobody_typed(served, monkeypatch, variables, options, fields):
    for one in variables.split():
        name, _, value = one.partition("=")
        monkeypatch.setenv(f"LLAMA_ARG_{name}", value)
    settings = served(*options.split())
    assert {name: all_of(settings)[name] for name in fields} == fields


def test_keys_of_variables_count_where_ours_is_not_set(served, monkeypatch, capsys):
    monkeypatch.setenv("LLAMA_API_KEY", "secret")
    monkeypatch.setenv("LLAMA_ARG_ENDPOINT_METRICS", "1")
    assert served().api_keys == ("secret",)
    told = capsys.readouterr().err
    assert "From the environment: LLAMA_API_KEY" in told
    assert "LLAMA_ARG_ENDPOINT_METRICS changes nothing here: /metrics is always there." in told
    assert "secret" not in told
    monkeypatch.setenv("SLIPSTREAM_API_KEY", "ours")
    assert served().api_keys == ("ours",)
    assert served("--api-key", "typed").api_keys == ("typed",)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("LLAMA_ARG_CTX_SIZE", "much", "'LLAMA_ARG_CTX_SIZE': 'much' is not a valid int"),
        ("LLAMA_ARG_PORT", "70000", "'LLAMA_ARG_PORT': 70000 is not in the range"),
        ("LLAMA_ARG_CTX_SIZE", "20", "The variable LLAMA_ARG_CTX_SIZE gives --ctx-size."),
        ("LLAMA_ARG_CACHE_RAM", "much", "The variable LLAMA_ARG_CACHE_RAM gives --cache-ram."),
        ("LLAMA_ARG_TEMPERATURE", "900", "The variable LLAMA_ARG_TEMPERATURE gives --temperature."),
        ("LLAMA_ARG_REASONING", "maybe", "The variable LLAMA_ARG_REASONING gives --reasoning."),
        ("LLAMA_ARG_OFFLINE", "maybe", "LLAMA_ARG_OFFLINE is on or off"),
        ("LLAMA_ARG_JINJA", "2", "LLAMA_ARG_JINJA is on or off"),
        ("LLAMA_ARG_JINJA", "0", "LLAMA_ARG_JINJA is llama-server's and not followed here"),
        ("LLAMA_ARG_NUMA", "distribute", "LLAMA_ARG_NUMA is llama-server's and not followed here"),
        ("LLAMA_ARG_NO_REPACK", "1", "LLAMA_ARG_NO_REPACK is llama-server's and not followed here"),
    ],
)
def test_a_variable_that_cannot_be_followed_is_named(served, monkeypatch, capsys, variable, value, sentence):
    monkeypatch.setenv(variable, value)
    assert main(["serve"]) == ExitCode.USAGE
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_a_model_of_the_hub_is_downloaded_once_and_then_served_without_asking_it(hub_server):
    hub_server.add("acme/fox-GGUF", {"fox-Q8_0.gguf": EMBER_DRAFT.read_bytes(), "fox-F16.gguf": b"GGUF"})
    choice = LlamaServerChoice(hf_repo="acme/fox-GGUF:Q8_0")
    path = choice.model(None)
    assert path is not None
    assert path.endswith("fox-Q8_0.gguf")
    n_asked = len(hub_server.asked)
    assert choice.model(None) == LlamaServerChoice(hf_repo="acme/fox-gguf:q8_0").model(None) == path
    assert len(hub_server.asked) == n_asked
    named = LlamaServerChoice(hf_repo="acme/fox-GGUF", hf_file="fox-Q8_0.gguf", hf_repo_draft="acme/fox-GGUF:Q8_0")
    assert named.model(None) == named.draft(None) == path
    for other in (choice.model, named.draft):
        with pytest.raises(BadOption, match="leave out one"):
            other("ember-q8_0")
    with pytest.raises(LibraryError, match="acme/none"):
        LlamaServerChoice(hf_repo="acme/none:Q8_0").model(None)
