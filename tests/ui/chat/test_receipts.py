"""What is said of a reply that has ended."""

from __future__ import annotations

from ui.chat.messages.receipts import problem_of, receipt, receipt_details
from ui.client.chat_records import Message, Role, Status, Timings


def ended(**more: object) -> Message:
    return Message(1, 1, None, Role.ASSISTANT, "x", 0, **more)  # type: ignore[arg-type]


def test_the_receipt_tells_how_a_reply_went() -> None:
    timings = Timings(ttft_ms=38, decode_per_second=412, decode_tokens=128, prefill_tokens=52, cached_tokens=48)
    done = receipt(ended(timings=timings, finish_reason="stop"))
    assert done == "412 tok/s  ·  first token 38 ms  ·  128 tokens  ·  prompt 100, 48 cached"
    assert receipt(ended(finish_reason="length", timings=timings)).startswith("Reached the token limit  ·  ")
    assert receipt(ended(status=Status.STOPPED)) == "Stopped"
    assert receipt(ended(timings=Timings(decode_tokens=1))) == "first token 0 ms  ·  1 tokens"
    assert "Prefill" not in receipt_details(Timings(decode_tokens=1))
    assert "Seed" not in receipt_details(timings)


def test_why_there_is_no_reply_stays_true_later() -> None:
    died = "The engine was killed while it was answering. It is being restarted: please send the request again."
    failed = ended(status=Status.FAILED, problem=died, finish_reason="engine_died")
    assert problem_of(failed) == "The engine was killed while it was answering."
    other = ended(status=Status.FAILED, problem="No disk. Free some space.")
    assert problem_of(other) == "No disk. Free some space."
    assert problem_of(ended()) is None


def test_what_drafts_brought_is_said_once_it_is_known() -> None:
    drafted = {"decode_tokens": 128, "drafted_tokens": 80, "accepted_tokens": 62}
    known, unknown = (Timings.from_object({**drafted, "speedup": speedup}) for speedup in (1.71, None))
    assert receipt(ended(timings=known)).endswith("62 of 80 drafts accepted  ·  1.7× plain")
    assert receipt(ended(timings=unknown)).endswith("62 of 80 drafts accepted")
    assert known is not None
    assert unknown is not None
    assert "1.71 times the speed of plain decoding" in receipt_details(known)
    assert "too little of plain decoding was seen to compare with" in receipt_details(unknown)
    assert "plain" not in receipt(ended(timings=Timings.from_object({"drafted_tokens": 0, "speedup": 1.0})))


def test_a_figure_of_an_earlier_version_that_drafts_cannot_reach_is_left_out() -> None:
    kept = {"decode_tokens": 129, "drafted_tokens": 120, "accepted_tokens": 106}
    impossible, high = (Timings.from_object({**kept, "speedup": speedup}) for speedup in (25.2, 5.5))
    assert "× plain" not in receipt(ended(timings=impossible))
    assert "5.5× plain" in receipt(ended(timings=high))


def test_a_cache_that_is_not_the_usual_one_is_named():
    usual, coarse = (Timings.from_object({"kv_type": kv_type}) for kv_type in ("f16", "q8_0"))
    assert "cache" not in receipt(ended(timings=usual))
    assert receipt(ended(timings=coarse)).endswith("q8_0 cache")
    assert "KV cache: f16" in receipt_details(usual)
    assert "KV cache" not in receipt_details(Timings.from_object({"kv_type": 8}))
