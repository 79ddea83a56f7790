"""Keeping models: the list, what happened behind the app's back, verifying and quantising, on the command line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.cli.terminal.text import width
from app.environment.exit_codes import ExitCode
from app.environment.paths import models_folder, usage_file
from app.pairing.service import MOST_PAIRED
from app.settings.model_settings_store import UsageStore
from core.machine.known_machine import runs_key
from models.catalog import catalog
from models.estimate.speed.runs import ModelRun, add_runs
from models.facts.model_facts import read_model
from models.formatting.figures import expected_speed
from tests.support.commands import ran, started
from tests.support.fork_server import stood_for
from tests.support.quantised import ember_f16
from tools.model_factory.gguf_factory import EMBER_DRAFT, Recipe, cached
from tools.stand_ins.probed_machine import remember_probe

# Deep enough to be interrupted while it is quantised.
DEEP = Recipe(n_layers=48, tensor_type="F16")
QUANTISE = ("models", "quantize", "--threads", "1")


@pytest.fixture
def f16(home: Path) -> Path:
    """Ember in F16 among the models."""
    path = models_folder() / "acme" / "ember-GGUF" / "ember-F16.gguf"
    path.parent.mkdir(parents=True)
    path.symlink_to(ember_f16())
    return path


def test_quantise_list_verify_and_remove(models, f16):
    code, out, err = models("quantize", "ember-F16", "q4_0", "--threads", "1", "--json")
    assert code == ExitCode.OK, err
    made = json.loads(out)
    assert (made["name"], made["type"], made["source"]) == ("ember-Q4_0", "Q4_0", "ember-F16")
    assert made["n_bytes"] == Path(made["path"]).stat().st_size
    shown = json.loads(models("show", "ember-Q4_0", "--json")[1])
    assert (shown["quantisation"], shown["verified"]) == ("Q4_0", "verified")
    assert shown["source"] == "quantised here from ember-F16 (F16)"
    assert "quantised here from" in models("list")[1]
    assert "is what it was" in models("verify", "ember-Q4_0")[1]
    assert json.loads(models("rm", "ember-Q4_0", "--delete", "--json")[1])["files"] == [made["path"]]
    assert not Path(made["path"]).exists()
    assert "ember-Q4_0" not in models("list")[1]


def test_what_cannot_be_quantised_says_why(models, f16):
    for arguments, code, says in (
        (("ember-F16", "Q9"), ExitCode.USAGE, "Choose one of: F16, BF16, Q8_0"),
        (("ember-F16", "Q4_0", "--output", "../x"), ExitCode.USAGE, "cannot be a model's name"),
        (("ember-q8_0", "Q4_0"), ExitCode.USAGE, "The option for that is --allow-requantize."),
        (("ember-q8_0", "Q4_0"), ExitCode.USAGE, "quantised already (Q8_0)"),
        (("nobody", "Q4_0"), ExitCode.MODEL, "no model called"),
    ):
        found, _, err = models("quantize", *arguments)
        assert (found, says in err) == (code, True), err
    models("quantize", "ember-F16", "Q4_0")
    code, _, err = models("quantize", "ember-F16", "Q4_0")
    assert (code, "already" in err) == (ExitCode.USAGE, True)
    code, out, _ = models("quantize", "ember-q8_0", "Q4_0", "--allow-requantize", "--output", "tiny é")
    assert (code, "tiny é" in out) == (ExitCode.OK, True)
    assert "cannot be divided into whole blocks of this type" in out


def quantising(**options: Any) -> subprocess.Popen[str]:
    """A command in the middle of its work."""
    process = started(*QUANTISE, str(cached(DEEP)), "Q4_K_M", **options)
    assert process.stderr is not None
    assert any("quantising" in line for line in process.stderr)
    return process


def test_ctrl_c_ends_quantising_and_leaves_nothing(home):
    process = quantising(is_forked=False, start_new_session=True)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, ""), err
    assert "Nothing of it is left" in err
    assert "Traceback" not in err
    assert [path for path in models_folder().rglob("*") if path.is_file() and path.suffix != ".lock"] == []


def test_a_killed_command_takes_its_process_along_and_is_begun_anew(home, models):
    process = quantising()
    (child,) = stood_for(psutil.Process(process.pid)).children()
    process.kill()
    process.communicate(timeout=60)
    with contextlib.suppress(psutil.NoSuchProcess):
        child.wait(60)
    assert [entry["is_toy"] for entry in json.loads(models("list", "--json")[1])] == [True, True]
    assert ran(*QUANTISE, str(cached(DEEP)), "Q4_K_M").returncode == ExitCode.OK
    (made,) = models_folder().rglob("*.gguf")
    assert made.parent.name == "quantised"


def test_the_list_is_a_table_in_any_script(models, f16):
    for name in ("模型 Q4.gguf", "نموذج.gguf", "🦊 fox.gguf", "e\u0301.gguf", "bad\x1b[31m.gguf"):
        shutil.copyfile(EMBER_DRAFT, f16.parent / name)
    (f16.parent / "broken.gguf").write_bytes(b"GGUF")
    UsageStore(usage_file(), clock=lambda: 1_700_000_000.0).note(f16)
    assert json.loads(models("show", "ember-F16", "--json")[1])["last_used"] == "2023-11-14T22:13:20+00:00"
    assert [width(text) for text in ("abc", "模型", "e\u0301", "🦊", "")] == [3, 4, 1, 2, 0]
    out = models("list")[1]
    assert "2023-11-1" in out
    assert "\x1b" not in out
    rows = out.split("\n\n")[0].splitlines()
    columns = {width(row[: row.index("1,024")]) for row in rows[1:]}
    assert len(columns) == 1
    assert "Cannot be used as models:\nbroken  broken.gguf is incomplete" in out
    assert "1,024" in out


def test_files_that_moved_or_went_are_told_once(models, f16):
    for output in ("one", "two", "three"):
        models("quantize", "ember-F16", "Q4_0", "--output", output)
    folder = models_folder() / "quantised"
    (folder / "one.gguf").unlink()
    (folder / "two.gguf").rename(models_folder() / "deux.gguf")
    os.utime(folder / "three.gguf", (1, 1))
    out = models("list")[1]
    assert "one.gguf was deleted or moved away" in out
    assert "two.gguf was moved" in out
    assert "changed since download" in out
    again = models("list")[1]
    assert "was deleted" not in again
    assert "was moved" not in again
    assert json.loads(models("show", "deux", "--json")[1])["verified"] == "verified"
    assert "is what it was" in models("verify", "three")[1]
    assert json.loads(models("show", "three", "--json")[1])["verified"] == "verified"


def test_a_file_of_another_content_fails_to_verify(models, f16):
    models("quantize", "ember-F16", "Q4_0")
    path = models_folder() / "quantised" / "ember-Q4_0.gguf"
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    code, _, err = models("verify", "ember-Q4_0")
    assert (code, "SHA-256 differs" in err) == (ExitCode.ERROR, True)
    assert "made here from ember-F16 (F16): remove it with `./slipstream models rm ember-Q4_0`" in err
    code, out, _ = models("verify", "ember-Q4_0", "--json")
    assert (code, json.loads(out)["verified"]) == (ExitCode.ERROR, "changed since download")
    code, _, err = models("verify", "ember-F16")
    assert (code, "no checksum to compare" in err) == (ExitCode.USAGE, True)
    assert "get it again from where you had it" in err


def test_thousands_of_models_are_read_once(models, f16, monkeypatch):
    """Listing looks at each file, and reads the header of each only once."""
    for i in range(2_000):
        (f16.parent / f"{i}.gguf").write_bytes(b"GGUF")
    read: list[Path] = []
    read_model = catalog.read_model
    monkeypatch.setattr(catalog, "read_model", lambda path: read.append(path) or read_model(path))
    assert len(json.loads(models("list", "--json")[1])) == 2_003
    # The bundled ones are read once more by whom they are partners of, and by nobody later in the same process.
    own = [path for path in read if path.is_relative_to(models_folder())]
    assert len(own) == len(set(own)) == 2_001


def test_the_list_says_how_fast_each_model_is_here(models, home):
    assert json.loads(models("list", "--json")[1])[0]["predicted_tokens_per_s"] is None, "nothing was measured yet"
    remember_probe(home / "cache")
    facts = read_model(EMBER_DRAFT)
    layers = {"CPU: layer": 1.0}
    run = ModelRun("ember-draft-q8_0", facts.weight_bytes, "", "", layers, 0.01, 98.7, 9, 64, 0, 0, 1.0)
    add_runs(home / "cache", runs_key(), [run])
    large, small = json.loads(models("list", "--json")[1])
    assert large["predicted_tokens_per_s"] > 0
    assert small["predicted_tokens_per_s"] > 0
    assert (large["measured_tokens_per_s"], small["measured_tokens_per_s"]) == (None, 98.7)
    lines = models("list")[1].splitlines()
    assert f"12 MB   {expected_speed(large['predicted_tokens_per_s'])}" in lines[1]
    assert "1.8 MB  99 " in lines[2]


def test_a_list_of_many_models_reads_each_header_once_for_all_processes(models, home, monkeypatch):
    folder = models_folder()
    folder.mkdir(parents=True)
    shutil.copyfile(EMBER_DRAFT, folder / "m000.gguf")
    for i in range(1, MOST_PAIRED + 1):
        os.link(folder / "m000.gguf", folder / f"m{i:03}.gguf")
    read: list[Path] = []
    judged: list[str] = []
    read_model = catalog.read_model
    monkeypatch.setattr(catalog, "read_model", lambda path: (read.append(path), read_model(path))[1])
    monkeypatch.setattr("app.pairing.service.pairing", lambda entry, *rest: judged.append(entry.name))
    first = json.loads(models("list", "--json")[1])
    assert len(read) == len(set(read)) == len(first) > MOST_PAIRED
    read.clear()
    # Each command makes a catalogue of its own, as each process does.
    assert json.loads(models("list", "--json")[1]) == first
    assert "m100" in models("list")[1]
    assert (read, judged) == ([], [])
    # To compare each with all would take minutes and say nothing until then.
    assert {(one["draft"], one["partners"]) for one in first} == {(None, None)}


@pytest.mark.skipif(sys.platform == "win32", reason="other systems allow such names")
def test_names_of_files_neither_move_the_cursor_nor_turn_the_text_around(models, f16):
    folder = f16.parent
    for name in ("fox\u202effug", "a\nb", "\x1b[2Jgone", "-lead"):
        shutil.copy(EMBER_DRAFT, folder / f"{name}.gguf")
    stand_in = "\N{REPLACEMENT CHARACTER}"
    out = "".join([models("list")[1], models("show", "fox\u202effug")[1], models("pair", "ember-F16")[1]])
    assert f"fox{stand_in}ffug" in out
    assert f"{stand_in}[2Jgone" in out
    assert "\na b " in out
    code, _, err = models("rm", "fox\u202effog")
    assert (code, "fox" in err) == (ExitCode.MODEL, True)
    assert not {"\u202e", "\x1b"} & {*out, *err}
    assert models("show", "--json", "--", "-lead")[0] == ExitCode.OK
