"""Receipts in the words of the wire."""

from __future__ import annotations

from app.server.openai.timings import timings
from core.values.messages import Receipt


def test_choices_of_one_call_are_added_up() -> None:
    one = Receipt(n_generated=10, n_drafted=8, n_accepted=6, bytes_per_token=1e6, peak_share=0.25, speedup=2.0)
    other = Receipt(n_generated=30, n_drafted=2, n_accepted=1, bytes_per_token=2e6, speedup=1.0)
    found = timings([one, other])
    assert (found["drafted_tokens"], found["accepted_tokens"]) == (10, 7)
    assert (found["bytes_per_token"], found["peak_share"], found["speedup"]) == (1_750_000, 0.25, 1.25)
    unknown = Receipt(n_generated=30, n_drafted=2, speedup=None)
    assert timings([one, unknown])["speedup"] is None, "too few plain steps were seen"
    nothing = timings([Receipt(kv_type="q8_0")])
    assert (nothing["drafted_tokens"], nothing["bytes_per_token"], nothing["peak_share"]) == (0, 0, None)
    assert (nothing["speedup"], nothing["kv_type"]) == (1.0, "q8_0")
