"""``slipstream models pair``, with real models and a hub of its own."""

from __future__ import annotations

import json
import re
import signal
from functools import partial
from typing import Any

import psutil
import pytest

from app.client.discovery import enlist
from app.environment.exit_codes import ExitCode
from app.pairing import offers as downloads
from tests.app.conftest import Typed
from tests.support.commands import started
from tests.support.fork_server import stood_for
from tests.support.pair_files import other_words
from tools.model_factory import gguf_factory, head_factory
from tools.model_factory.gguf_factory import EMBER_DRAFT
from tools.stand_ins.hub_server import Fault, HubServer


@pytest.fixture
def server(hub_server: HubServer) -> HubServer:
    hub_server.add("acme/ember-2M-GGUF", {"ember-2M-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    return hub_server


@pytest.fixture
def pair(server: HubServer, models: Typed) -> Typed:
    return partial(models, "pair")


def read(pair: Typed, *arguments: str) -> dict[str, Any]:
    code, out, _ = pair(*arguments, "--json")
    assert code == ExitCode.OK
    return dict(json.loads(out))


def test_the_partners_are_listed_with_what_they_gain(pair, library, server):
    other_words(library / "other.gguf", {900: "fox"})
    code, out, _ = pair("deep")
    assert code == ExitCode.OK
    assert out.startswith("deep: ember-draft-q8_0 drafts: 1.")
    assert "*  ember-draft-q8_0  small model" in out
    assert "other: 1 token id means another text: 900 is 'fox' instead of" in out
    assert "--test` measures here" in out
    assert server.asked == [], "there is a partner here: nobody else is asked"
    found = read(pair, "deep")
    assert (found["used"], found["chosen_by"], found["notices"]) == ("ember-draft-q8_0", None, [])
    by_name = {one["name"]: one for one in found["partners"]}
    assert by_name["ember-draft-q8_0"]["predicted"] > 1
    assert (by_name["other"]["gain"], by_name["other"]["predicted"]) == (None, None)


def test_a_partner_is_chosen_by_hand_and_automatically_again(pair, library):
    assert "ember-q8_0 drafts for deep from now on" in pair("deep", "--use", "ember-q8_0")[1]
    assert (read(pair, "deep")["used"], read(pair, "deep")["chosen_by"]) == ("ember-q8_0", "user")
    assert "Nothing drafts for deep from now on, neither a small model nor heads." in pair("deep", "--none")[1]
    assert read(pair, "deep")["used"] is None
    assert "Chosen automatically again." in pair("deep", "--auto")[1]
    assert "automatically already" in pair("deep", "--auto")[1]
    assert read(pair, "deep")["used"] == "ember-draft-q8_0"


def test_a_draft_in_the_settings_goes_first_and_is_said_until_another_is_chosen(models, pair, library):
    models.json("settings", "deep", "--set", "draft=ember-q8_0")
    out = pair("deep")[1]
    assert out.startswith("deep: ember-q8_0 drafts: the model's settings name it, which goes before automatic pairing.")
    assert "Without that: ember-draft-q8_0 drafts" in out
    assert "*  ember-q8_0" in out
    found = read(pair, "deep")
    assert (found["used"], found["chosen_by"]) == ("ember-q8_0", "settings")
    assert "Chosen automatically again. The draft in the model's settings is reset." in pair("deep", "--auto")[1]
    assert (read(pair, "deep")["used"], read(pair, "deep")["chosen_by"]) == ("ember-draft-q8_0", None)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nobody",), ExitCode.MODEL, "no model called 'nobody'"),
        (("deep", "--use", "nobody"), ExitCode.MODEL, "Those that can draft for deep"),
        (("ember-draft-q8_0", "--test"), ExitCode.MODEL, "nothing to test"),
        (("deep", "--now"), ExitCode.USAGE, "give --test"),
        (("deep", "--none", "--auto"), ExitCode.USAGE, "--none and --auto contradict"),
        (("deep", "ember-q8_0"), ExitCode.USAGE, "--use ember-q8_0"),
    ],
)
def test_what_cannot_be_says_so(pair, library, arguments, code, words):
    found, _, err = pair(*arguments)
    assert (found, words in err) == (code, True), err


def test_without_a_partner_the_hub_is_asked_for_a_small_sibling(pair, home, server):
    folder = home / "data" / "models"
    folder.mkdir(parents=True)
    gguf_factory.big_vocab_ember(folder / "ember-90M.gguf", 5_000, n_layers=30)
    small = gguf_factory.big_vocab_ember(folder / "y.gguf", 5_000, source=EMBER_DRAFT)
    server.add("acme/ember-5k-GGUF", {"ember-2M-Q8_0.gguf": small.read_bytes()}, downloads=9)
    small.unlink()
    code, out, _ = pair("ember-90M")
    assert code == ExitCode.OK
    assert "There is no small model here that fits." in out
    assert "`./slipstream models pull acme/ember-5k-GGUF:Q8_0` (" in out
    assert "acme/ember-2M-GGUF: It has 4,096 tokens and the model 5,000." in out
    (folder / "bad.gguf").write_bytes(b"GGUF")
    code, _, err = pair("bad")
    assert (code, "bad cannot be used: " in err) == (ExitCode.MODEL, True), err
    (offer,) = read(pair, "ember-90M")["offers"]
    assert (offer["name"], offer["is_checked"]) == ("acme/ember-5k-GGUF:Q8_0", True)
    assert offer["predicted"] > 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(status=503), "503"),
        (Fault(status=429, headers={"Retry-After": "9"}), "in 9 s,"),
        (Fault(body=b"[{"), "cannot be understood"),
        (Fault(stall_after=0), "did not answer|does not answer|too slowly|cannot be reached"),
    ],
)
def test_a_hub_that_fails_or_is_slow_costs_a_sentence(pair, library, server, monkeypatch, fault, words):
    monkeypatch.setattr(downloads, "_HUB_CALL_SECONDS", 60.0 if fault.stall_after is None else 0.4)
    monkeypatch.setattr(downloads, "_HUB_SECONDS", 90.0)
    assert [one["name"] for one in read(pair, "deep", "--hub")["offers"]] == ["acme/ember-2M-GGUF:Q8_0"]
    server.fault("/api/models", fault)
    found = read(pair, "deep", "--hub")
    assert re.search(words, " ".join(found["notes"])), found["notes"]
    assert found["used"] == "ember-draft-q8_0"
    if fault.stall_after is not None:
        monkeypatch.setattr(downloads, "_HUB_SECONDS", 0.3)
        assert "answers too slowly" in " ".join(read(pair, "deep", "--hub")["notes"]), "it is not waited for"
    n_asked = len(server.asked)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE" in read(pair, "deep", "--hub")["notes"][0]
    assert len(server.asked) == n_asked


def test_list_and_show_name_the_partners(models, library):
    listed = {one["name"]: one for one in models.json("list")}
    assert listed["deep"]["draft"] == "ember-draft-q8_0"
    assert next(one["name"] for one in listed["deep"]["partners"]) == "ember-draft-q8_0"
    assert listed["ember-draft-q8_0"]["partners"] == []
    assert models.json("show", "deep")["partners"] == listed["deep"]["partners"]
    assert "ember-draft-q8_0" in models("show", "deep")[1]


def test_ctrl_c_in_a_test_leaves_everything_as_it_was(library, server):
    process = started("models", "pair", "deep", "--test")
    me = psutil.Process(process.pid)
    while not (children := stood_for(me).children()):
        assert process.poll() is None
    (child,) = children
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert "who drafts is as before" in err
    assert "Traceback" not in err
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running()


def test_a_test_prints_what_it_found_and_waits_for_a_server_that_works(pair, library, monkeypatch, fake):
    from app.cli.models import pair as models_pair
    from app.jobs.pair_test import pair_test
    from app.jobs.pair_test.pair_test import PairTest, TrialResult

    monkeypatch.setattr(PairTest, "measure", lambda self, partner, progress: TrialResult(1.5, 10.0, 15.0, 0.7))
    code, out, _ = pair("deep", "--test", "ember-q8_0")
    assert code == ExitCode.OK
    assert "ember-q8_0: 1.50×, 15 tokens/s instead of 10. 70% of its tokens were accepted." in out
    assert "A test chose ember-q8_0: 1.50× measured here." in out
    found = read(pair, "deep", "--test", "ember-q8_0")
    assert (found["used"], found["trials"][0]["gain"]) == ("ember-q8_0", 1.5)
    monkeypatch.setattr(PairTest, "measure", lambda self, partner, progress: TrialResult(1.0, 10.0, 10.4, None))
    out = pair("deep", "--test", "ember-q8_0")[1]
    assert out.startswith("ember-q8_0 drafted nothing: ")
    assert "1.0" not in out
    assert re.search(r"ember-q8_0 .*drafted nothing", pair("deep")[1])
    monkeypatch.setattr(PairTest, "measure", lambda self, partner, progress: TrialResult(1.5, 10.0, 15.0, 0.7))
    fake.n_active = 1
    enlist(host="127.0.0.1", port=int(fake.url.rpartition(":")[2]), api_key=None, model=None)
    monkeypatch.setattr(pair_test, "LOOK_SECONDS", 0.01)
    show = models_pair._TestLine.show

    def then_idle(self, *step):
        fake.n_active = 0
        show(self, *step)

    monkeypatch.setattr(models_pair._TestLine, "show", then_idle)
    assert "A running server is writing replies. The test waits" in pair("deep", "--test", "ember-q8_0")[2]
    fake.n_active = 1
    assert "waits" not in pair("deep", "--test", "ember-q8_0", "--now")[2]


def test_a_head_on_the_hub_is_downloaded_with_its_model_and_drafts_for_it(models, pair, server, tmp_path):
    model = gguf_factory.big_vocab_ember(tmp_path / "m.gguf", 5_000, n_layers=30).read_bytes()
    head = head_factory.eagle_head(tmp_path / "h.gguf", n_vocab=5_000, has_tables=False).read_bytes()
    server.add("acme/fox-90M-GGUF", {"fox-90M-Q8_0.gguf": model, "eagle3-fox-90M.gguf": head})
    models.json("pull", "acme/fox-90M-GGUF:Q8_0")
    before = read(pair, "fox-90M-Q8_0")
    (offer,) = [one for one in before["offers"] if one["kind"] == "eagle3"]
    assert (before["used"], offer["name"]) == (None, "acme/fox-90M-GGUF:eagle3-fox-90M.gguf")
    pulled = models.json("pull", "acme/fox-90M-GGUF:Q8_0", "--with-draft")
    assert (pulled["was_there"], pulled["draft"]["name"]) == (True, "eagle3-fox-90M")
    assert read(pair, "fox-90M-Q8_0")["used"] == "eagle3-fox-90M"
    assert "eagle3-fox-90M drafts: " in models("pull", "acme/fox-90M-GGUF:Q8_0", "--with-draft")[1]
