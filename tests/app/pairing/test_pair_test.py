"""A test of pairs on this machine: real models in a process of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.client.discovery import enlist, withdraw
from app.jobs.pair_test import pair_test, trial
from app.jobs.pair_test.pair_test import Cancelled, OtherWork, PairTest, TrialResult, TrialTask, other_work
from app.jobs.verify.verification import Comparison, DecodedReply, Mode, Verifier, load_verifier
from app.library.find_model import catalog, find_model
from app.pairing.service import CannotPair, choose, choose_automatically, pairing, store
from app.settings.server_settings import ServerSettings
from core.process.child_process import ChildProcess, start_module
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed
from core.values.messages import LoadedModel
from models.pairing.partner import Partner
from tests.support.prompts import EMBER, EMBER_DRAFT
from tools.model_factory import head_factory
from tools.stand_ins.fake_openai import FakeServer

pytestmark = pytest.mark.usefixtures("forked_children")

MEASURED = TrialResult(1.5, 10.0, 15.0, 0.7)


def pair_of(
    name: str | None = None, model: str = "deep", look: Callable[[], OtherWork | None] = lambda: None
) -> PairTest:
    return PairTest(find_model(model), name, catalog(), n_tokens=12, seconds=0.0, look=look)


@pytest.fixture
def measured(monkeypatch):
    """Gains by the partner's name, in place of measurements; one that is missing fails."""
    gains: dict[str, float] = {}

    def measure(self: PairTest, partner: Partner, progress: object) -> TrialResult:
        if partner.name not in gains:
            raise CannotPair("It did not load.")
        gain = gains[partner.name]
        return replace(MEASURED, gain=gain, acceptance=None if gain == 1.0 else MEASURED.acceptance)

    monkeypatch.setattr(PairTest, "measure", measure)
    return gains


def test_a_pair_is_measured_with_as_many_slots_as_are_served(monkeypatch):
    """Attention and kernels depend on them."""
    asked: list[EngineOptions] = []

    def load(options: EngineOptions, **_: object) -> None:
        asked.append(options)
        raise LoadFailed("That is enough.")

    monkeypatch.setattr("app.jobs.verify.verification.load_verifier", load)
    with pytest.raises(LoadFailed):
        trial.measure(TrialTask("model.gguf", None))
    assert [options.n_slots for options in asked] == [ServerSettings().engine.n_slots]


@pytest.mark.parametrize("held_up", [(1.0, 300.0), (280.0, 2.0)], ids=["plain", "drafted"])
def test_a_prompt_during_which_the_machine_was_held_up_does_not_count(held_up: tuple[float, float]) -> None:
    def compared(plain: float, drafted: float) -> Comparison:
        replies = [DecodedReply(tuple(range(48)), False, rate) for rate in (plain, drafted)]
        return Comparison(0, Mode(), replies[0], replies[1], None, drafted / plain)

    usual = [compared(280.0, 300.0), compared(270.0, 500.0), compared(290.0, 260.0)]
    assert trial.undisturbed([*usual, compared(*held_up)]) == usual
    assert trial.undisturbed([compared(280.0, 2.0)]) == [compared(280.0, 2.0)], "then there is nothing better"


def test_where_nothing_was_drafted_there_is_no_gain(monkeypatch) -> None:
    def load(options: EngineOptions, **more: Any) -> tuple[Verifier, LoadedModel]:
        return load_verifier(replace(options, speculation="off", draft_path=None), **more)

    monkeypatch.setattr("app.jobs.verify.verification.load_verifier", load)
    found = trial.measure(TrialTask(str(EMBER), str(EMBER_DRAFT), n_tokens=12, seconds=0.0))
    assert (found.gain, found.acceptance) == (1.0, None), "the rates of both differ by chance"
    assert min(found.plain_rate, found.drafted_rate) > 0


def test_one_that_drafted_nothing_is_said_to(library, measured):
    measured |= {"ember-draft-q8_0": 1.0, "ember-q8_0": 1.0}
    assert pair_of().run().decision.used is None
    choose_automatically(find_model("deep"))
    assert "drafted nothing when it was tested here" in pairing(find_model("deep")).decision.why
    choose(find_model("deep"), "ember-q8_0")
    chosen = pairing(find_model("deep")).decision.why
    assert chosen == "You chose ember-q8_0: it drafted nothing when it was tested here."


def test_a_pair_is_measured_and_kept(library):
    stages: list[tuple[str, str]] = []
    test = pair_of("ember-draft-q8_0")
    result = test.run(lambda name, stage, share: stages.append((name, stage)))
    (trial,) = result.trials
    assert trial.measured is not None
    assert trial.measured.plain_rate > 0
    gain = trial.measured.drafted_rate / trial.measured.plain_rate if trial.measured.acceptance is not None else 1.0
    assert trial.measured.gain == pytest.approx(gain)
    assert not trial.was_disturbed
    assert list(dict.fromkeys(stages)) == [("ember-draft-q8_0", "loading"), ("ember-draft-q8_0", "measuring")]
    partner = next(one for one in pairing(find_model("deep")).partners if one.name == "ember-draft-q8_0")
    assert partner.measured is not None
    assert partner.gain == trial.measured.gain
    assert partner.measured.forecast > 1


def test_prediction_heads_in_the_file_are_measured_too(home, library):
    shutil.copyfile(head_factory.cached_mtp_counter(16), library / "counter.gguf")
    (trial,) = pair_of("mtp", "counter").run().trials
    assert trial.measured is not None
    assert trial.measured.gain > 0


def test_the_winner_drafts_from_now_on_and_where_none_is_faster_none(library, measured):
    measured |= {"ember-draft-q8_0": 1.3, "ember-q8_0": 1.6}
    result = pair_of().run()
    assert result.decision.used is not None
    assert result.decision.used.name == "ember-q8_0"
    assert "A test chose ember-q8_0: 1.60× measured here." in result.decision.why
    measured |= {"ember-q8_0": 0.98}
    assert "ember-draft-q8_0" in pair_of("ember-q8_0").run().decision.why
    measured |= {"ember-draft-q8_0": 1.0, "ember-q8_0": 0.97}
    result = pair_of().run()
    assert result.decision.used is None
    assert "A test found none that makes it faster here." in result.decision.why


def test_it_waits_until_servers_are_idle_for_a_moment_or_is_begun(library, measured, monkeypatch):
    monkeypatch.setattr(pair_test, "LOOK_SECONDS", 0.001)
    measured |= {"ember-draft-q8_0": 1.3}
    works = iter([OtherWork.REPLIES, None, OtherWork.LOADING, *[None] * pair_test.QUIET_LOOKS])
    stages: list[str] = []
    found = pair_of("ember-draft-q8_0", look=lambda: next(works)).run(lambda name, stage, share: stages.append(stage))
    assert found.decision.used is not None
    assert stages == ["replies", "a load"]
    assert next(works, "over") == "over"
    stages.clear()
    test = pair_of("ember-draft-q8_0", look=lambda: OtherWork.REPLIES)

    def begin(name: str, stage: str, share: float) -> None:
        stages.append(stage)
        test.begin()

    (trial,) = test.run(begin).trials
    assert trial.measured is not None
    assert stages == ["replies"]


def test_one_that_waits_is_cancelled_and_starts_nothing(library):
    waits = pair_of("ember-draft-q8_0", look=lambda: OtherWork.REPLIES)
    with pytest.raises(Cancelled):
        waits.run(lambda name, stage, share: waits.cancel())


def test_one_that_fails_does_not_cost_the_others(library, measured):
    measured["ember-q8_0"] = 1.4
    result = pair_of().run()
    assert {trial.partner.name: trial.problem for trial in result.trials} == {
        "ember-draft-q8_0": "It did not load.",
        "ember-q8_0": None,
    }
    measured.clear()
    choose(find_model("deep"), None)
    with pytest.raises(CannotPair, match=r"ember-draft-q8_0: It did not load\. ember-q8_0: It did"):
        pair_of().run()
    assert pairing(find_model("deep")).used is None, "a choice by hand is as it was"


def test_a_single_bad_result_leaves_the_rest_to_what_is_expected(library, measured):
    measured["ember-draft-q8_0"] = 0.9
    decision = pair_of("ember-draft-q8_0").run().decision
    assert decision.used is not None
    assert decision.used.name == "ember-q8_0"


def test_what_cannot_draft_is_not_tested(library):
    with pytest.raises(CannotPair, match="cannot draft for itself"):
        pair_of("deep")
    with pytest.raises(CannotPair, match="nothing to test"):
        pair_of(None, "ember-draft-q8_0")


def test_a_test_is_cancelled_from_another_thread(library):
    test = pair_of("ember-draft-q8_0")
    with pytest.raises(Cancelled):
        test.run(lambda name, stage, share: test.cancel())
    assert store().is_empty
    with pytest.raises(Cancelled):
        test.run()


def test_a_test_is_cancelled_before_it_says_anything(library, monkeypatch):
    started = threading.Event()

    def start(*arguments):
        child = start_module(*arguments)
        started.set()
        return child

    monkeypatch.setattr(pair_test, "start_module", start)
    test = pair_of("ember-draft-q8_0")
    thread = threading.Thread(target=lambda: (started.wait(), test.cancel()))
    thread.start()
    with pytest.raises(Cancelled):
        test.run()
    thread.join()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.abort()", "was ended by signal 6"),
        ("raise SystemExit('the device is lost')", "ended with exit code 1. the device is lost"),
        ("print('no message'); print('[1]')", "ended with exit code 0"),
    ],
)
def test_a_process_that_dies_is_a_sentence(library, monkeypatch, program, words):
    def start(module, errors):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        return ChildProcess(subprocess.Popen([sys.executable, "-c", program], **pipes))

    monkeypatch.setattr(pair_test, "start_module", start)
    with pytest.raises(CannotPair, match=words):
        pair_of("ember-draft-q8_0").run()


def test_a_draft_that_goes_before_its_turn_is_a_sentence(library):
    own = library / "own.gguf"
    own.write_bytes((library / "deep.gguf").read_bytes())
    head_factory.counter(own, 1)
    test = pair_of("own")
    own.unlink()
    with pytest.raises(CannotPair, match=r"own: There is no file .*own\.gguf"):
        test.run()


def listed(fake: FakeServer) -> None:
    assert enlist(host="127.0.0.1", port=int(fake.url.rpartition(":")[2]), api_key=None, model=None) is None


def test_replies_and_loading_are_other_work_and_an_idle_server_or_none_is_not(home, fake):
    assert other_work() is None
    listed(fake)
    assert other_work() is None
    listed(fake)
    fake.n_active = 1
    assert other_work() is OtherWork.REPLIES
    fake.n_active, fake.phase = 0, "loading"
    assert other_work() is OtherWork.LOADING
    withdraw()
    assert other_work() is None
    fake.n_active, fake.api_key = 1, "another"
    listed(fake)
    assert other_work() is None
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        enlist(host="127.0.0.1", port=nobody.getsockname()[1], api_key=None, model=None)
        assert other_work() is None
