"""A model and its small one in one process: each answers for itself, and everything ends once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.engine.engines import Engines
from core.llama.context import Context
from core.llama.library import silence_log
from core.loading.load_drafts import open_draft_engine
from core.loading.load_engine import embedder_beside
from core.machine.host import core_count
from core.values.engine_options import EngineOptions
from core.values.errors import BadRequest, LoadFailed
from core.values.messages import FinishReason
from core.values.request import Lane, Request
from tests.support.engines import Ledger, complete, load, open_engine
from tests.support.prompts import EMBER, EMBER_DRAFT, ENDLESS, FOX, GREEDY, chat

# Each model has an answer of its own to this, and neither has a near-tie in it.
PROMPT = chat("What is a bee?")


@pytest.fixture
def engines() -> Iterator[Engines]:
    silence_log()
    options = EngineOptions(str(EMBER), n_slots=2, n_ctx=512, n_threads=1, draft_path=str(EMBER_DRAFT))
    main, loaded = load(options)
    made = Engines(main, embedder_beside(main, options, loaded), lambda: open_draft_engine(main, loaded))
    yield made
    made.close()


def submit(engines: Engines, name: str, n_tokens: int = 30, **fields: object) -> None:
    fields.setdefault("sampling", GREEDY)
    request = Request(name, PROMPT, n_tokens, **fields)
    engines.submit(engines.prepare(request))


def run(engines: Engines, ledger: Ledger) -> Ledger:
    for _ in range(20_000):
        if engines.is_idle:
            return ledger
        ledger.add(engines.step())
    raise AssertionError("not idle")


def test_the_small_model_says_what_it_says_when_it_is_loaded_alone(engines: Engines) -> None:
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=512) as alone:
        expected, _, _ = complete(alone, PROMPT, max_tokens=30)
    with open_engine(EMBER, n_slots=2, n_ctx=512, speculation="off") as alone:
        other, _, _ = complete(alone, PROMPT, max_tokens=30)
    submit(engines, "spark", by_draft=True)
    submit(engines, "standard")
    ledger = run(engines, Ledger())
    assert [ledger.started[name].slot for name in ("standard", "spark")] == [0, 2], "two slots are the model's own"
    assert ledger.text["spark"] == expected
    assert ledger.text["standard"] == other
    assert expected != other


def test_requests_of_both_can_be_cancelled_and_end_once(engines: Engines) -> None:
    ledger = Ledger()
    for name in ("a", "b", "c"):
        submit(engines, f"spark {name}", 200, by_draft=True, sampling=ENDLESS)
        submit(engines, f"standard {name}", 200, sampling=ENDLESS)
    for _ in range(5):
        ledger.add(engines.step())
    for name in ("spark a", "spark c", "standard b", "nobody"):
        engines.cancel(name)
    run(engines, ledger)
    cancelled = {name for name, ended in ledger.ended.items() if ended.reason is FinishReason.CANCELLED}
    assert cancelled == {"spark a", "spark c", "standard b"}
    assert len(ledger.ended) == 6


def test_beside_a_fast_request_the_small_model_moves_on_too(engines: Engines) -> None:
    ledger = Ledger()
    submit(engines, "fast", 300, lane=Lane.FAST, sampling=ENDLESS)
    submit(engines, "spark", 400, by_draft=True, sampling=ENDLESS)
    while "fast" not in ledger.ended:
        ledger.add(engines.step())
    assert 0 < ledger.n_tokens["spark"] < 300
    run(engines, ledger)
    assert ledger.n_tokens["spark"] == 400


def test_the_snapshot_counts_both(engines: Engines) -> None:
    submit(engines, "spark", by_draft=True)
    submit(engines, "standard")
    engines.step()
    snapshot = engines.take_snapshot()
    assert snapshot is not None
    assert {one.lane: one.n_running for one in snapshot.lanes} == {"fast": 0, "standard": 1, "batch": 0, "spark": 1}
    run(engines, Ledger())
    while (after := engines.take_snapshot()) is not None:
        snapshot = after
    assert snapshot.is_idle


def test_without_a_small_model_the_request_is_refused() -> None:
    options = EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1)
    main, loaded = load(options)
    engines = Engines(main, embedder_beside(main, options, loaded))
    assert main.draft_model is None
    with pytest.raises(BadRequest, match="small model"):
        engines.prepare(Request("spark", FOX, 4, by_draft=True))
    engines.close()


def test_a_small_model_without_memory_for_its_cache_is_told_and_may_be_asked_again(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*arguments: object, **fields: object) -> None:
        raise LoadFailed("llama.cpp could not make a context.")

    with monkeypatch.context() as patch:
        patch.setattr("core.loading.load_drafts.open_side_context", no_memory)
        with pytest.raises(LoadFailed, match=r"too little memory for ember-draft-q8_0 .* Choose another speed"):
            submit(engines, "spark", 4, by_draft=True)
    submit(engines, "spark", 4, by_draft=True)
    assert run(engines, Ledger()).n_tokens["spark"] == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "No small model is paired"),
        ({"draft_path": str(EMBER_DRAFT), "speculation": "off"}, "switched off"),
        ({"speculation": "off"}, "None is loaded, since drafting is switched off"),
        ({"draft_path": "gone.gguf", "must_draft": False}, "could not be loaded"),
    ],
)
def test_what_is_missing_is_said(options: dict[str, object], words: str) -> None:
    silence_log()
    engine, loaded = load(EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1, **options))
    engine.close()
    assert loaded.spark is None
    assert words in loaded.why_no_spark


def test_the_small_model_is_described() -> None:
    silence_log()
    options = EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1, draft_path=str(EMBER_DRAFT))
    engine, loaded = load(options)
    engine.close()
    assert loaded.spark is not None
    assert loaded.spark.name == Path(EMBER_DRAFT).stem
    assert loaded.spark.n_bytes < loaded.n_bytes
    assert loaded.spark.n_ctx == 128


@pytest.mark.skipif(core_count() < 2, reason="one core cannot be divided")
def test_beside_engines_of_other_processes_each_context_uses_its_part_of_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silence_log()
    threads: dict[Context, set[int]] = {}
    set_threads = Context.set_threads

    def watched(context: Context, *counts: int) -> None:
        threads[context] = set(counts)
        set_threads(context, *counts)

    monkeypatch.setattr(Context, "set_threads", watched)
    options = EngineOptions(
        str(EMBER), n_slots=2, n_ctx=512, n_threads=core_count(), draft_path=str(EMBER_DRAFT), calibrates=False
    )
    main, loaded = load(options)
    engines = Engines(main, embedder_beside(main, options, loaded), lambda: open_draft_engine(main, loaded))
    assert list(threads.values()) == [{core_count()}] * 2, "the model's context, and that of its draft"
    engines.share_cores(core_count())
    assert list(threads.values()) == [{1}] * 2
    submit(engines, "spark", by_draft=True)
    run(engines, Ledger())
    assert list(threads.values()) == [{1}] * 3, "a context that is opened later too"
    engines.share_cores(1)
    assert list(threads.values()) == [{core_count()}] * 3
    engines.close()
