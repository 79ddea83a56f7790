"""Settings of models and their last use: found again by what a model is, kept through damage and races."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path

import pytest

from app.environment.exit_codes import ExitCode
from app.settings.model_settings_store import ModelSettingsStore, UsageStore
from core.values.model_settings import ModelSettings
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT


@pytest.fixture
def config(home: Path) -> Path:
    return home / "config" / "models.json"


def test_set_show_and_reset(models, config):
    code, out, _ = models("settings", "ember", "--set", "temperature=0.5", "--set", "ctx=512", "--json")
    assert (code, json.loads(out)) == (0, {"name": "ember-q8_0", "settings": {"ctx": 512, "temperature": 0.5}})
    shown = models("settings", "ember")[1].splitlines()
    assert "temperature        0.5  recommended: 0.8" in shown
    assert "top_k              -    recommended: 40" in shown
    models("settings", "ember", "--set", "system=Speak as a pirate, a=b.")
    left = json.loads(models("settings", "ember", "--reset", "temperature", "--json")[1])
    assert left["settings"] == {"ctx": 512, "system": "Speak as a pirate, a=b."}
    assert json.loads(models("settings", "ember-draft-q8_0", "--json")[1])["settings"] == {}
    assert json.loads(models("settings", "ember", "--reset", "all", "--json")[1])["settings"] == {}
    assert json.loads(config.read_text())["entries"] == {}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("ember", "--set", "temperature"), ExitCode.USAGE, "write KEY=VALUE"),
        (("ember", "--set", "temperature=hot"), ExitCode.USAGE, "must be a number"),
        (("ember", "--set", "colour=red"), ExitCode.USAGE, "no setting 'colour'"),
        (("ember", "--reset", "colour"), ExitCode.USAGE, "no setting 'colour'"),
        (("ember", "--set", "draft=nobody"), ExitCode.MODEL, "no model called 'nobody'"),
        (("ember", "--set", "draft="), ExitCode.USAGE, "To draft with the recommended one, reset it."),
        (
            ("ember", "--set", "ctx=99999999999"),
            ExitCode.USAGE,
            "trained for 1,024 tokens of context: choose that many",
        ),
        (("ember", "--set", "threads=512"), ExitCode.USAGE, "threads at once: choose that many or fewer"),
        (("ember", "--set", "draft=ember"), ExitCode.USAGE, "ember-q8_0 cannot draft for itself"),
        (("nobody",), ExitCode.MODEL, "no model called"),
    ],
)
def test_what_cannot_be_set_changes_nothing(models, config, arguments, code, says):
    found, _, err = models("settings", *arguments)
    assert (found, says in err) == (code, True), err
    assert not config.exists() or json.loads(config.read_text())["entries"] == {}


def test_a_context_that_no_memory_holds_is_refused_with_one_that_fits(models, tmp_path):
    length = b"llama.context_length" + struct.pack("<I", 4)
    long = tmp_path / "long.gguf"
    long.write_bytes(
        EMBER_DRAFT.read_bytes().replace(length + struct.pack("<I", 1024), length + struct.pack("<I", 2**30))
    )
    code, _, err = models("settings", str(long), "--set", f"ctx={2**30}")
    assert code == ExitCode.USAGE
    fitting = re.search(r"([\d,]+) fit into its memory", err)
    assert fitting is not None, err
    assert models("settings", str(long), "--set", f"ctx={fitting[1].replace(',', '')}")[0] == ExitCode.OK


def test_a_moved_model_keeps_its_settings(tmp_path):
    store = ModelSettingsStore(tmp_path / "models.json")
    first = tmp_path / "one.gguf"
    shutil.copyfile(EMBER_DRAFT, first)
    store.change(first, "one", lambda old: ModelSettings(ctx=512))
    moved = tmp_path / "below" / "二.gguf"
    moved.parent.mkdir()
    first.rename(moved)
    assert ModelSettingsStore(tmp_path / "models.json").of(moved).ctx == 512
    assert store.of(EMBER) == ModelSettings()
    assert store.of(first) == ModelSettings()
    here, there = (ModelSettingsStore(tmp_path / "more.json") for _ in range(2))
    assert here.of(EMBER) == ModelSettings()
    there.change(EMBER, "ember", lambda old: ModelSettings(temperature=0.5))
    assert here.of(EMBER).temperature == 0.5
    there.change(EMBER, "ember", lambda old: ModelSettings())
    assert here.of(EMBER) == ModelSettings()


def test_a_damaged_file_is_set_aside_and_said(tmp_path, caplog):
    path = tmp_path / "models.json"
    path.write_text("{")
    store = ModelSettingsStore(path)
    assert store.of(EMBER) == ModelSettings()
    assert "models.json.broken-1" in caplog.text
    store.change(EMBER, "ember", lambda old: ModelSettings(ctx=512))
    assert store.of(EMBER).ctx == 512


def test_what_others_wrote_by_hand_is_kept_and_said(tmp_path, caplog):
    path = tmp_path / "models.json"
    store = ModelSettingsStore(path)
    store.change(EMBER, "ember", lambda old: ModelSettings(ctx=512))
    content = json.loads(path.read_text())
    (entry,) = content["entries"].values()
    entry["settings"]["temperature"] = "hot"
    content["entries"]["someone else's"] = ["odd"]
    path.write_text(json.dumps(content))
    os.utime(path, ns=(1, 1))
    assert store.of(EMBER).given == {"ctx": 512}
    assert "temperature cannot be 'hot'" in caplog.text
    store.change(EMBER_DRAFT, "draft", lambda old: ModelSettings(ctx=64))
    assert json.loads(path.read_text())["entries"]["someone else's"] == ["odd"]
    assert store.of(EMBER).given == {"ctx": 512}


def test_last_use_is_of_the_model_and_not_of_its_path(tmp_path):
    now = [1_000.0]
    usage = UsageStore(tmp_path / "usage.json", clock=lambda: now[0])
    copy = tmp_path / "copy.gguf"
    shutil.copyfile(EMBER_DRAFT, copy)
    assert usage.all().of(copy) is None
    usage.note(copy)
    now[0] = 2_000.0
    usage.note(EMBER)
    known = UsageStore(tmp_path / "usage.json").all()
    assert (known.of(EMBER_DRAFT), known.of(EMBER), known.of(tmp_path / "none.gguf")) == (1_000.0, 2_000.0, None)
    usage.note(tmp_path / "none.gguf")


def test_models_of_another_size_are_not_even_opened(tmp_path, monkeypatch):
    from app.settings import model_settings_store as model_settings

    usage = UsageStore(tmp_path / "usage.json")
    usage.note(EMBER)
    known = UsageStore(tmp_path / "usage.json").all()
    opened: list[Path] = []
    monkeypatch.setattr(model_settings, "identity", lambda files: opened.append(files[0]) or "x")
    assert known.of(EMBER_DRAFT) is None
    assert opened == []
