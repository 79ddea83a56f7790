"""Figures as people read them."""

from __future__ import annotations

import pytest

from ui.chat import figures
from ui.chat.records import Message, Role, Status, Timings


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (figures.rate(4.26), "4.3 tok/s"),
        (figures.rate(1234.5), "1,234 tok/s"),
        (figures.milliseconds(38.2), "38 ms"),
        (figures.milliseconds(2140), "2.1 s"),
        (figures.parameters(11_300_000), "11 M"),
        (figures.parameters(7_600_000_000), "7.6 B"),
        (figures.parameters(5_000), "5 K"),
    ],
)
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected


def ended(**more: object) -> Message:
    return Message(1, 1, None, Role.ASSISTANT, "x", 0, **more)  # type: ignore[arg-type]


def test_the_receipt_tells_how_a_reply_went() -> None:
    timings = Timings(ttft_ms=38, decode_per_second=412, decode_tokens=128, prefill_tokens=52, cached_tokens=48)
    done = figures.receipt(ended(timings=timings, finish_reason="stop"))
    assert done == "412 tok/s  ·  first token 38 ms  ·  128 tokens  ·  prompt 100, 48 cached"
    assert figures.receipt(ended(finish_reason="length", timings=timings)).startswith("Reached the token limit  ·  ")
    assert figures.receipt(ended(status=Status.STOPPED)) == "Stopped"
    assert figures.receipt(ended(timings=Timings(decode_tokens=1))) == "first token 0 ms  ·  1 tokens  ·  prompt 0"
    assert "Seed" not in figures.receipt_details(timings)


def test_a_cache_that_is_not_the_usual_one_is_named():
    usual, coarse = (Timings.from_object({"kv_type": kv_type}) for kv_type in ("f16", "q8_0"))
    assert "cache" not in figures.receipt(ended(timings=usual))
    assert figures.receipt(ended(timings=coarse)).endswith("q8_0 cache")
    assert "KV cache: f16" in figures.receipt_details(usual)
    assert "KV cache" not in figures.receipt_details(Timings.from_object({"kv_type": 8}))
