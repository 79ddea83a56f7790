"""Origins of web pages as people write them."""

from __future__ import annotations

import pytest

from core.values.errors import BadOption
from core.values.web_origin import origin_of, origins_of


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
    ],
)
def test_an_origin_is_as_browsers_send_it(written: str, origin: str) -> None:
    assert origin_of(written) == origin
    assert origin_of(origin) == origin


@pytest.mark.parametrize(
    "written",
    ["", "example.com", "https://", "https://a.b/path", "https://a b", "https://u@a.b", "http://a:0", "http://a:70000"],
)
def test_what_is_none_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(BadOption, match="http://localhost:3000"):
        origin_of(written)


def test_each_is_kept_once() -> None:
    assert origins_of(["https://a.b/", "http://c", "https://A.b"]) == ("https://a.b", "http://c")
