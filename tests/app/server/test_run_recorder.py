"""Replies that had the engine for themselves teach the speed model; others, and damaged files, do not matter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.fit_reports.fit_reports import current_machine, report_file
from app.server.calls.run_recorder import RunRecorder
from core.machine.bandwidth import Bandwidth, remember, remembered
from core.machine.host import last_level_cache, this_machine
from core.machine.known_machine import runs_key
from core.values.messages import Ended, FinishReason, LoadedModel, Receipt
from core.values.request import Request
from models.estimate.speed.runs import FILE_NAME, read_runs
from models.facts.model_facts import read_model
from tests.app.server.conftest import RunningServer
from tests.support.waiting import until
from tools.model_factory.gguf_factory import EMBER

RECEIPT = Receipt(
    n_prompt=20, n_generated=101, n_drafted=60, n_accepted=35, n_judged=40, n_right=30,
    decode=0.5, speedup=2.0, plain_seconds=0.01,
)  # fmt: skip


def loaded(**changes: object) -> LoadedModel:
    fields: dict[str, object] = dict.fromkeys(LoadedModel.__dataclass_fields__, 0)
    fields |= {
        "path": str(EMBER),
        "kv_type": "f16",
        "devices": ("CPU",),
        "n_threads": 2,
        "spark": None,
        "draft_path": "",
    }
    return LoadedModel(**(fields | changes))


def recorder(folder: Path, model: LoadedModel | None = None) -> RunRecorder:
    return RunRecorder(folder, lambda: model or loaded(), save_after=60)


def end(name: str, receipt: Receipt = RECEIPT) -> Ended:
    return Ended(name, FinishReason.STOP, receipt=receipt)


def reply(recorder: RunRecorder, receipt: Receipt = RECEIPT, **request: object) -> None:
    recorder.opened(Request("a", "text", **request))
    recorder.ended(end("a", receipt))


def test_a_reply_alone_is_kept_with_what_plain_decoding_takes(tmp_path: Path) -> None:
    recording = recorder(tmp_path, loaded(draft_path="folder/small.gguf"))
    reply(recording)
    assert read_runs(tmp_path, runs_key()) == ()
    recording.save()
    (run,) = read_runs(tmp_path, runs_key())
    assert (run.model, run.draft, run.n_past) == ("ember-q8_0", "small", 70)
    assert (run.n_drafted, run.n_accepted) == (40, 30), "what a lookup found tells nothing of the draft"
    assert run.rate == pytest.approx(200)
    assert 1 / run.seconds == pytest.approx(100)
    assert run.amounts["CPU: layer"] == 6
    assert run.amounts["CPU: weights Q8_0"] == pytest.approx(read_model(EMBER).active_bytes_per_token, rel=0.01)


@pytest.mark.parametrize(
    ("draft_path", "has_heads", "draft", "n_judged"),
    [("", True, "mtp", 40), ("a/head.gguf", False, "head", 40), ("a/b.gguf", True, "", 0), ("", False, "", 0)],
)
def test_what_was_judged_is_booked_to_the_one_that_drafted(
    tmp_path: Path, draft_path: str, has_heads: bool, draft: str, n_judged: int
) -> None:
    recording = recorder(tmp_path, loaded(draft_path=draft_path, has_heads=has_heads))
    reply(recording)
    recording.save()
    (run,) = read_runs(tmp_path, runs_key())
    assert (run.draft, run.n_drafted) == (draft, n_judged)


def test_replies_side_by_side_short_ones_those_of_the_small_model_and_guesses_are_not(tmp_path: Path) -> None:
    recording = recorder(tmp_path)
    recording.opened(Request("a", "text"))
    recording.opened(Request("b", "text"))
    recording.ended(end("a"))
    recording.ended(end("b"))
    reply(recording, Receipt(n_generated=8, decode=0.5))
    reply(recording, by_draft=True)
    reply(recording, replace(RECEIPT, speedup=None, plain_seconds=None))
    recording.opened(Request("c", "text"))
    recording.closed("c")
    recording.save()
    assert not (tmp_path / FILE_NAME).exists()
    reply(recording)
    recording.save()
    assert len(read_runs(tmp_path, runs_key())) == 1


def test_runs_are_written_a_while_after_the_first_reply_where_they_can_be(tmp_path: Path) -> None:
    several_gpus = recorder(tmp_path, loaded(n_gpu_layers=7, devices=("GPU0", "GPU1")))
    reply(several_gpus)
    several_gpus.save()
    assert read_runs(tmp_path, runs_key()) == (), "they teach nothing"
    reply(RunRecorder(tmp_path, loaded, save_after=0.01))
    assert len(until(lambda: read_runs(tmp_path, runs_key()))) == 1
    (tmp_path / "file").write_text("")
    recording = recorder(tmp_path / "file")
    reply(recording)
    recording.save()


@pytest.mark.parametrize("is_large", [True, False])
def test_a_reply_that_reads_faster_than_was_measured_raises_that(tmp_path: Path, is_large: bool) -> None:
    here = this_machine()
    remember(tmp_path, Bandwidth(18e9, 2, 1 << 30, here.cpu, here.ram, is_estimate=True))
    # A model that the processor's cache holds says nothing of memory.
    recording = recorder(tmp_path, loaded(n_bytes=4 * last_level_cache() if is_large else 1 << 20))
    reply(recording, replace(RECEIPT, bytes_per_token=190e6))
    recording.save()
    known = remembered(tmp_path, here)
    assert known is not None
    assert (known.bytes_per_second, known.is_estimate) == (38e9 if is_large else 18e9, True)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    return tmp_path


def test_what_was_measured_stands_beside_the_prediction(own_home: Path) -> None:
    recording = recorder(own_home / "cache")
    for _ in range(3):
        reply(recording)
    recording.save()
    judgement = report_file(read_model(EMBER), EMBER, current_machine())
    assert judgement.measured is not None
    assert (round(judgement.measured.rate), round(judgement.measured.plain_rate)) == (200, 100)
    (own_home / "cache" / FILE_NAME).write_text(json.dumps({"machine": "another", "runs": []}))
    assert report_file(read_model(EMBER), EMBER, current_machine()).measured is None


def test_a_server_keeps_what_its_replies_measured(own_home: Path) -> None:
    # Of replies that are drafted for, little is known before some plain steps were seen. Other programs cannot disturb
    # one thread.
    with RunningServer("--no-draft", "--speculation", "off", "--no-calibration", "--threads", "1") as running:
        for animal in ("fox", "owl", "bear"):
            running.chat(f"Tell me a story about a {animal}.", max_tokens=100)
    runs = read_runs(own_home / "cache", runs_key())
    assert {run.model for run in runs} == {"ember-q8_0"}
    assert all(run.n_tokens >= 32 and run.seconds < 1 for run in runs)
