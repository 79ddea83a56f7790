"""Frozen values refuse what can never work, with a sentence."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from core.values.addresses import host_of, origin_of, origins_of
from core.values.engine_options import EngineOptions
from core.values.errors import BadOption, BadRequest
from core.values.request import Request, SamplingParams


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("top_p", 1.1),
        ("min_p", -1.0),
        ("repeat_penalty", 0.0),
        ("presence_penalty", 3.0),
        ("mirostat", 1),
        ("top_logprobs", 21),
        ("top_logprobs", 3),
        ("logit_bias", ((-1, 1.0),)),
        ("seed", 2**64),
        ("top_k", 2**32 + 1),
        ("dry_sequence_breakers", ("x",) * 33),
        ("dry_sequence_breakers", ("\ud800",)),
        ("dry_sequence_breakers", ("a\0b",)),
    ],
)
def test_bad_sampling_values_name_their_field(field: str, value: Any) -> None:
    with pytest.raises(BadRequest, match=field) as caught:
        SamplingParams(**{field: value})
    assert caught.value.param == field


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_tokens": -1}, "max_tokens must be 0 or more"),
        ({"prompt": ""}, "empty"),
        ({"prompt": ()}, "empty"),
        ({"stop": ("",)}, "stop"),
        ({"stop": ("x",) * 65}, "at most 64"),
    ],
)
def test_bad_requests_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        Request(**{"id": "1", "prompt": "x", **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model_path": ""}, "No model file"),
        ({"n_ctx": 1}, "context length must be at least 16"),
        ({"n_slots": 0}, "between 1 and 64"),
        ({"n_slots": 65}, "between 1 and 64"),
        ({"n_threads": 0}, "threads must be between 1 and 512, not 0"),
        ({"n_threads": 513}, "threads must be between 1 and 512, not 513"),
        ({"n_gpu_layers": -2}, "GPU layers"),
        ({"n_ctx": 4096, "n_cells": 1024}, "cannot hold one context"),
        ({"flash_attention": "maybe"}, "flash attention must be one of auto, on, off"),
        ({"kv_type": "q3_0"}, "type of the KV cache"),
        ({"kv_type": "q8_0", "flash_attention": "off"}, "needs flash attention"),
        ({"speculation": "always"}, "one of auto, draft, off, not 'always'"),
        ({"draft_depth": -1}, "draft depth must be between 0 and 16, not -1"),
        ({"draft_depth": 17}, "draft depth must be between 0 and 16, not 17"),
    ],
)
def test_bad_engine_options_are_refused_with_a_sentence(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        EngineOptions(**{"model_path": "m.gguf", **fields})


def test_values_cross_the_pipe_whole() -> None:
    request = Request("1", "text", 5, ("a",), SamplingParams(seed=3))
    assert pickle.loads(pickle.dumps(request)) == request


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        (" https://Example.com/ ", "https://example.com"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://example.com:80", "http://example.com"),
        ("https://example.com:0443", "https://example.com"),
        ("https://[::1]:8080", "https://[::1]:8080"),
        ("https://b\u00fccher.example", "https://xn--bcher-kva.example"),
        ("vscode-webview://0abc", "vscode-webview://0abc"),
        ("*", "*"),
        ("null", "null"),
        ("file://", "file://"),
    ],
)
def test_an_origin_is_as_browsers_send_it(written: str, origin: str) -> None:
    assert origin_of(written) == origin
    assert origin_of(origin) == origin


@pytest.mark.parametrize(
    "written",
    [
        "",
        "example.com",
        "https://",
        "https://a.b/path",
        "https://a b",
        "https://u@a.b",
        "http://a:0",
        "http://a:70000",
        "https://*.a.b",
    ],
)
def test_what_is_no_origin_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(BadOption, match="http://localhost:3000"):
        origin_of(written)


@pytest.mark.parametrize(
    ("written", "host"),
    [
        (" Box.Tailnet ", "box.tailnet"),
        ("box.tailnet:8642", "box.tailnet"),
        ("https://box.tailnet/v1", "box.tailnet"),
        ("box.tailnet.", "box.tailnet"),
        ("my_box", "my_box"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("::1", "::1"),
        ("[::1]:8642", "::1"),
    ],
)
def test_a_name_of_the_server_is_as_clients_send_it(written: str, host: str) -> None:
    assert host_of(written) == host
    assert host_of(host) == host


@pytest.mark.parametrize("written", ["", "*", "*.example.com", "a b", "http://", "[::1"])
def test_what_names_no_host_is_refused(written: str) -> None:
    with pytest.raises(BadOption, match=r"my-machine\.example"):
        host_of(written)


def test_each_origin_is_kept_once() -> None:
    assert origins_of(["https://a.b/", "http://c", "https://A.b"]) == ("https://a.b", "http://c")
