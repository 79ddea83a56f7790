"""What is said of a reply that has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QTextLayout
from PySide6.QtWidgets import QLabel

from core.values.messages import Bottleneck, Snapshot
from ui.chat.messages.receipt_view import ReceiptCard, ReceiptLine
from ui.chat.messages.receipts import (
    CONTEXT_FULL,
    failure_of,
    phases,
    receipt,
    receipt_facts,
    what_would_help,
    why_this_fast,
)
from ui.client.chat_records import Message, Role, Status, Timings
from ui.gauges import faces
from ui.theme.appearance import Appearance
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.facts_grid import FactsGrid


def ended(**more: object) -> Message:
    return Message(1, 1, None, Role.ASSISTANT, "x", 0, **more)


def test_the_receipt_tells_how_a_reply_went() -> None:
    timings = Timings(ttft_ms=38, decode_per_second=412, decode_tokens=128, prefill_tokens=52, cached_tokens=48)
    done = receipt(ended(timings=timings, finish_reason="stop"))
    assert done == "412 tok/s  ·  first token 38 ms  ·  128 tokens  ·  prompt 100, 48 cached"
    assert receipt(ended(finish_reason="length", timings=timings)).startswith("Reached the token limit  ·  ")
    assert receipt(ended(finish_reason=CONTEXT_FULL, timings=timings)).startswith("Filled the context  ·  ")
    assert receipt(ended(status=Status.STOPPED)) == "Stopped"
    assert receipt(ended(timings=Timings(decode_tokens=1))) == "first token 0 ms  ·  1 token"
    assert [phase.name for phase in phases(timings)] == ["Waited", "Prompt", "Written"]
    assert [phase.name for phase in phases(Timings(decode_tokens=1))] == ["First token", "Written"]
    assert "Seed" not in dict(receipt_facts(timings))
    usual, coarse = (Timings.from_object({"kv_type": kv_type}) for kv_type in ("f16", "q8_0"))
    assert "cache" not in receipt(ended(timings=usual))
    assert receipt(ended(timings=coarse)).endswith("q8_0 cache")
    assert dict(receipt_facts(usual))["KV cache"] == "f16"
    assert "KV cache" not in dict(receipt_facts(Timings.from_object({"kv_type": 8})))


def test_why_there_is_no_reply_stays_true_later() -> None:
    died = "The engine was killed while it was answering. It is being restarted: please send the request again."
    failed = ended(status=Status.FAILED, problem=died, finish_reason="engine_died")
    assert failure_of(failed) == "The engine was killed while it was answering."
    other = ended(status=Status.FAILED, problem="No disk. Free some space.")
    assert failure_of(other) == "No disk. Free some space."
    assert failure_of(ended()) is None


def test_what_drafts_brought_is_said_once_it_is_known_and_can_be() -> None:
    drafted = {"decode_tokens": 128, "drafted_tokens": 80, "accepted_tokens": 62}
    known, unknown = (Timings.from_object({**drafted, "speedup": speedup}) for speedup in (1.71, None))
    assert receipt(ended(timings=known)).startswith("1.7× plain  ·  62 of 80 drafts accepted"), "they are left out last"
    assert receipt(ended(timings=unknown)).startswith("62 of 80 drafts accepted")
    assert receipt(ended(timings=Timings(drafted_tokens=1, accepted_tokens=1))).startswith("1 of 1 draft accepted")
    assert known is not None
    assert unknown is not None
    assert dict(receipt_facts(known))["Speed-up"] == "1.71× plain, measured"
    assert dict(receipt_facts(unknown))["Speed-up"] == "too few plain steps yet"
    assert "plain" not in receipt(ended(timings=Timings.from_object({"drafted_tokens": 0, "speedup": 1.0})))
    kept = {"decode_tokens": 129, "drafted_tokens": 120, "accepted_tokens": 106}
    impossible, high = (Timings.from_object({**kept, "speedup": speedup}) for speedup in (25.2, 5.5))
    assert "× plain" not in receipt(ended(timings=impossible))
    assert "5.5× plain" in receipt(ended(timings=high))


def test_no_fact_is_cut_in_a_window_of_the_usual_size(qtbot, appearance: Appearance) -> None:
    figures = {"decode_tokens": 24, "drafted_tokens": 15, "accepted_tokens": 12, "speedup": None, "kv_type": "f16"}
    timings = Timings.from_object(figures)
    assert timings is not None
    grid = FactsGrid(can_halve=True)
    qtbot.addWidget(grid)
    grid.show_facts(receipt_facts(timings))
    grid.setFixedWidth(728)
    grid.show()
    cut = [one.text() for one in grid.findChildren(ElidedLabel) if one.sizeHint().width() > one.width()]
    assert cut == []


def test_a_line_without_room_for_all_figures_shows_fewer_and_cuts_none(qtbot) -> None:
    line = ReceiptLine()
    qtbot.addWidget(line)
    line.setText("412 tok/s  ·  1.7× plain  ·  first token 38 ms")
    whole, two, one = (
        line.fontMetrics().horizontalAdvance(words) + 1
        for words in (line.text(), "412 tok/s  ·  1.7× plain", "412 tok/s")
    )
    assert line.fitting(whole) == line.text()
    assert line.fitting(whole - 2) == line.fitting(two) == "412 tok/s  ·  1.7× plain"
    assert line.fitting(two - 2) == line.fitting(one) == "412 tok/s"
    assert line.fitting(one - 2).endswith("…")
    fewer, label = ElidedLabel("412 tok/s  ·  1.7× plain"), ElidedLabel(line.text())
    for one_label in (fewer, label):
        qtbot.addWidget(one_label)
        one_label.resize(whole - 2, 20)
    assert label.grab().toImage() == fewer.grab().toImage()


@pytest.mark.parametrize(
    ("figures", "why", "helps"),
    [
        ({"prefill_tokens": 0}, "stopped", ""),
        ({"queued_ms": 900.0}, "waited", "Fewer requests"),
        ({"prefill_ms": 900.0}, "50 tokens were not in the cache", "A shorter prompt"),
        ({"peak_share": 0.84}, "memory speed", "A draft model"),
        ({"peak_share": 0.2}, "computing and the work between steps took the rest", "Fewer programs"),
        ({"drafted_tokens": 80, "accepted_tokens": 50, "speedup": 1.7}, "2.0 tokens", "A smaller"),
        ({"drafted_tokens": 80, "accepted_tokens": 50}, "2.0 tokens. What that gained is not known", "A smaller"),
        ({"peak_share": 0.84, "drafted_tokens": 80, "accepted_tokens": 50, "speedup": 1.7}, "2.0", "A smaller"),
        (
            {"drafted_tokens": 80, "accepted_tokens": 10, "speedup": 1.0},
            "Drafts did not make it faster",
            "A draft model that agrees more",
        ),
        ({"drafted_tokens": 7, "accepted_tokens": 4, "speedup": 0.95}, "did not make it faster", "A smaller"),
        ({}, "a step of its own. What limited it is not known", "A smaller"),
        ({"limited_by": "compute"}, "Limited by computing", "Fewer programs"),
        ({"limited_by": "overhead", "peak_share": 0.3}, "Limited by work between steps", "Fewer programs"),
        ({"limited_by": "bandwidth", "peak_share": 0.55}, "Limited by memory speed", "A draft model"),
        ({"limited_by": "compute", "peak_share": 0.7}, "Limited by computing", "Fewer programs"),
        (
            {"limited_by": "compute", "drafted_tokens": 80, "accepted_tokens": 50, "speedup": 1.0},
            "Drafts did not make it faster. Limited by computing",
            "Fewer programs",
        ),
    ],
)
def test_a_sentence_says_why_and_one_what_would_help(figures: dict[str, float], why: str, helps: str) -> None:
    usual = {"prefill_tokens": 50, "prefill_ms": 30.0, "decode_ms": 300.0, "decode_tokens": 100}
    timings = Timings.from_object(usual | figures)
    assert why in why_this_fast(timings)
    assert what_would_help(timings).startswith(helps)


def test_a_receipt_and_the_foot_name_the_same_limit() -> None:
    for bound in (Bottleneck.BANDWIDTH, Bottleneck.COMPUTE, Bottleneck.OVERHEAD):
        foot = faces.limited_by(Snapshot(is_idle=False, limited_by=bound)).words
        reply = Timings(prefill_tokens=50, decode_ms=300.0, decode_tokens=100, limited_by=bound, peak_share=0.3)
        assert why_this_fast(reply).lower().startswith(foot)


def test_drafts_are_not_advised_where_computing_or_the_work_between_steps_is_the_limit() -> None:
    plain = Timings(prefill_tokens=50, decode_ms=300.0, decode_tokens=100, peak_share=0.2)
    assert "draft model" not in what_would_help(plain), "it helps on some GPUs alone, and a receipt knows of none"
    drafted = replace(plain, drafted_tokens=80, accepted_tokens=60, speedup=1.0)
    assert "draft model" not in what_would_help(drafted)
    assert why_this_fast(replace(drafted, peak_share=None)).startswith("Drafts did not make it faster.")


def test_a_rate_in_the_legend_is_not_broken_at_its_slash(qtbot, appearance: Appearance) -> None:
    card = ReceiptCard()
    qtbot.addWidget(card)
    card.show_timings(Timings(decode_ms=37, decode_tokens=17, decode_per_second=434))
    (rate,) = (label for label in card.findChildren(QLabel) if "434 tok" in label.text())
    words = QTextLayout(rate.text(), rate.font())
    words.beginLayout()
    line = words.createLine()
    line.setLineWidth(rate.fontMetrics().horizontalAdvance("17 tokens at 434 tok/"))
    words.endLayout()
    assert rate.text()[: line.textLength()] == "17 tokens at 434 "
