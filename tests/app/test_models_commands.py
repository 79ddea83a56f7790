"""The commands below ``models``, against a hub of their own over real HTTP."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from app.cli.chat.chat_server import ServerChoice, _own_options
from app.environment.exit_codes import ExitCode
from app.environment.paths import cache_folder
from app.library import removal
from app.library.find_model import find_model
from core.machine import bandwidth
from core.machine.host import this_machine
from tests.app.conftest import Models
from tests.support.commands import ran, started
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT
from tools.model_factory.projector_factory import projector
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.probed_machine import remember_probe

REPO = "acme/fox-GGUF"


@pytest.fixture
def server(hub_server: HubServer) -> HubServer:
    files = {"fox-Q8_0.gguf": EMBER, "fox-Q4_0.gguf": EMBER_DRAFT, "mmproj-fox.gguf": projector("gemma3")}
    hub_server.add(REPO, {name: path.read_bytes() for name, path in files.items()})
    return hub_server


@pytest.fixture
def models(server: HubServer, models: Models) -> Models:
    """With a model on the hub."""
    return models


def test_search(models, server, monkeypatch):
    (row,) = models.json("search", "fox")
    assert (row["repo_id"], row["licence"], row["n_models"]) == (REPO, "apache-2.0", 2)
    code, out, _ = models("search", "fox", "--sort", "likes")
    assert code == ExitCode.OK
    assert REPO in out
    assert "Nothing was found" in models("search", "bear")[1]
    server.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    listed = models.json("search")
    assert listed["date"] in models("search")[1]
    assert "doctor measures it" in models("search")[1].replace("\n", " ")
    code, _, err = models("search", "fox")
    assert (code, "HF_HUB_OFFLINE" in err) == (ExitCode.UNREACHABLE, True)
    assert server.asked == []


def test_search_without_words_says_fit_and_speed_on_80_columns(models, monkeypatch):
    remember_probe(cache_folder())
    monkeypatch.setenv("COLUMNS", "80")
    # Else other programs take and give back memory between the two commands.
    monkeypatch.setattr("models.estimate.fit.memory.free_memory", lambda: 8 << 30)
    out = models("search")[1]
    assert max(map(len, out.splitlines())) <= 80
    for listed in models.json("search")["models"]:
        judged = listed["judgement"]
        (row,) = (line for line in out.splitlines() if line.startswith(f"  {listed['title']}  "))
        assert f"    {listed['repo_id']}:{listed['quantisation']}\n" in out
        if judged["plan"] is None or judged["verdict"] == "will not fit":
            assert row.endswith("does not fit")
        else:
            assert re.search(r"  (fits|tight) +≈ [\d.,]+ tok/s$", row)
            assert judged["predicted"]["empty"] > 0


def test_show_a_repository_and_a_header_before_the_download(models, server):
    shown = models.json("show", f"{REPO}:q8_0")
    assert (shown["architecture"], shown["n_ctx_train"], shown["kv_bytes_per_token"]) == ("llama", 1024, 4608)
    assert server.n_content_bytes <= 1 << 20
    judged = shown["judgement"]
    assert (judged["verdict"], judged["plan"]["n_ctx"]) == ("green", 1024)
    assert "doctor measures" in judged["why_no_prediction"]
    told = models("show", f"{REPO}:Q8_0")[1]
    assert re.search(r"^cached for a token +5 KB$", told, re.MULTILINE)
    assert re.search(r"^chat template +yes$", told, re.MULTILINE)
    assert "green. It fits with 512 tokens" in models("show", f"{REPO}:Q8_0", "--context", "512")[1]
    shown, out = models.json("show", REPO), models("show", REPO)[1]
    roles = {item["name"]: item["role"] for item in shown["models"]}
    assert roles == {"fox-Q4_0": "model", "fox-Q8_0": "model", "mmproj-fox": "projector"}
    assert shown["recommendation"]["quantisation"] == "Q8_0"
    for words in ("fox-Q8_0", "projector, beside a model", "Take Q8_0, the best quality that fits well"):
        assert words in out
    server.add("acme/bad-GGUF", {"bad-Q8_0.gguf": b"not a model"})
    advice = models.json("show", "acme/bad-GGUF")["recommendation"]
    assert advice["quantisation"] is None
    assert "No advice on what to take" in advice["sentence"]


def test_show_judges_a_model_of_this_machine_with_what_was_measured(models, home):
    (home / "cache").mkdir(parents=True, exist_ok=True)
    here = this_machine()
    bandwidth.remember(home / "cache", bandwidth.Bandwidth(25e9, 2, 1 << 30, here.cpu, here.ram, is_estimate=False))
    judged = models.json("show", "ember-q8_0", "--draft", "ember-draft-q8_0")["judgement"]
    assert judged["predicted"]["empty"] > judged["predicted"]["full"] > 0
    assert judged["plan"]["devices"][0]["draft"] > 1_000_000
    assert judged["predicted_with_draft"]["is_acceptance_measured"] is False
    out = models("show", "ember-q8_0")[1]
    assert re.search(r"^predicted +≈ [\d.,]+ tok/s at an empty context, ≈ ", out, re.MULTILINE)
    assert "is not possible" in models("show", "ember-q8_0", "--context", str(1 << 40))[1]


def test_verify_names_the_command_that_mends_a_changed_file(models, server, home):
    path = Path(models.json("pull", f"{REPO}:Q8_0")["files"][0])
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    code, _, err = models("verify", "fox-Q8_0")
    command = f"./slipstream models pull {REPO}:fox-Q8_0.gguf --revision {server.repos[REPO].commit}"
    assert (code, f"`{command}` downloads it again." in err) == (ExitCode.ERROR, True), err
    code, out, _ = models("verify", "fox-Q8_0", "--json")
    assert json.loads(out)["mended_by"] == command
    assert models(*command.split()[2:])[0] == ExitCode.OK
    assert "is what it was" in models("verify", "fox-Q8_0")[1]
    moved = path.rename(home / "data" / "models" / "moved.gguf")
    models("list")
    moved.write_bytes(EMBER_DRAFT.read_bytes())
    err = models("verify", "moved")[2]
    assert f"downloads it again to {path}, `./slipstream models rm moved` removes this one." in err


def test_an_address_is_a_name_too(models, server):
    page = f"https://huggingface.co/{REPO}"
    assert models.json("show", page)["repo_id"] == REPO
    assert models.json("show", f"hf.co/{REPO}:Q4_0")["name"] == "fox-Q4_0"
    assert models.json("pull", f"{page}/blob/main/fox-Q4_0.gguf")["name"] == "fox-Q4_0"


def test_pull_list_and_remove(models, home):
    pulled = models.json("pull", f"{REPO}:Q8_0")
    path = home / "data" / "models" / REPO / "fox-Q8_0.gguf"
    beside = path.with_name("mmproj-fox.gguf")
    assert (pulled["files"], pulled["was_there"]) == ([str(path), str(beside)], False)
    assert path.read_bytes() == EMBER.read_bytes()
    assert beside.read_bytes() == projector("gemma3").read_bytes()
    assert "mmproj-fox" not in [entry["name"] for entry in models.json("list")]
    (listed,) = [entry for entry in models.json("list") if entry["name"] == "fox-Q8_0"]
    assert (listed["source"], listed["is_verified"], listed["problem"]) == (f"{REPO}@{'0' * 12}", True, None)
    assert "is there already" in models("pull", f"{REPO}:Q8_0")[1]
    os.utime(path, ns=(1, 1))
    assert models.json("show", "fox-Q8_0")["is_verified"] is False, "it was changed behind the back"
    other = Path(shutil.copy(path, path.with_name("fox-Q6_K.gguf")))
    assert models.json("rm", "fox-Q6_K", "--delete")["files"] == [str(other)], "the projector is needed still"
    removed = models.json("rm", "fox-Q8_0", "--delete")
    assert removed["files"] == [str(path), str(beside)]
    assert [file for file in (home / "data" / "models").rglob("*") if file.suffix in (".gguf", ".json")] == []
    assert not path.parent.parent.exists()


def test_a_download_that_is_no_model_says_so_and_how_it_goes_away(models, server):
    server.add("acme/broken", {"b-Q8_0.gguf": EMBER.read_bytes()[:500_000]})
    code, out, err = models("pull", "acme/broken")
    assert (code, "is there and verified" in out) == (ExitCode.OK, True)
    assert "another download would not help: `./slipstream models rm b-Q8_0` removes it" in err
    assert models("rm", "b-Q8_0", "--delete")[0] == ExitCode.OK


def test_removal_goes_to_the_trash_and_one_that_fails_says_what_to_do(models, monkeypatch):
    trashed = []
    monkeypatch.setattr(removal, "remove_file", lambda file, for_good: trashed.append((file.name, for_good)))
    models("pull", f"{REPO}:Q4_0")
    assert "in the trash" in models("rm", "fox-Q4_0")[1]
    assert trashed == [("fox-Q4_0.gguf", False)]

    def refuse(file, for_good):
        raise OSError(13, "Permission denied")

    models("pull", f"{REPO}:Q4_0")
    monkeypatch.setattr(removal, "remove_file", refuse)
    code, _, err = models("rm", "fox-Q4_0")
    assert (code, "--delete` deletes it for good" in err) == (ExitCode.ERROR, True)
    code, _, err = models("rm", "fox-Q4_0", "--delete")
    assert (code, "could not be deleted: Permission denied" in err, "--delete" in err) == (ExitCode.ERROR, True, False)


def test_a_file_whose_name_is_not_utf8_is_listed_set_and_removed(models, home):
    file = home / "data" / "models" / os.fsdecode(b"\xff.gguf")
    file.parent.mkdir(parents=True)
    for name in ("%FF", "\udcff", str(file)):
        shutil.copyfile(EMBER_DRAFT, file)
        (listed,) = [entry for entry in models.json("list") if not entry["is_toy"]]
        assert (listed["name"], listed["problem"]) == ("%FF", None)
        assert models("list")[0] == ExitCode.OK
        assert models.json("show", name)["name"] == "%FF"
        assert models("settings", name, "--set", "temperature=0.5")[0] == ExitCode.OK
        assert models("rm", name, "--delete")[0] == ExitCode.OK
        assert not file.exists()


def test_what_was_not_downloaded_is_not_removed(models, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own.gguf").write_bytes(EMBER_DRAFT.read_bytes())
    models("import", str(tmp_path / "mine"))
    for name, reason in (("ember", "part of Slipstream"), ("own", "in a folder of yours"), ("none", "no model called")):
        code, _, err = models("rm", name)
        assert code in (ExitCode.USAGE, ExitCode.MODEL)
        assert reason in err
    assert (tmp_path / "mine" / "own.gguf").exists()
    models("import", str(tmp_path / "mine"), "--forget")
    code, _, err = models("rm", str(tmp_path / "mine" / "own.gguf"))
    assert (code, "remove the file itself" in err, "--forget" in err) == (ExitCode.USAGE, True, False)


def test_a_model_that_is_listed_by_a_link_is_not_removed_by_any_name(models, home):
    models("pull", f"{REPO}:Q8_0")
    folder = home / "data" / "models"
    model, link = folder / REPO / "fox-Q8_0.gguf", folder / "ACME.gguf"
    link.symlink_to(model)
    listed = [entry["name"] for entry in models.json("list")]
    assert "ACME" in listed
    assert "fox-Q8_0" not in listed, "once"
    for name in ("ACME", "fox-Q8_0", str(model)):
        code, out, err = models("rm", name, "--delete")
        assert (code, out) == (ExitCode.USAGE, "")
        assert f"ACME is a link to another file: {link} leads to {model}. Nothing was removed" in err
        assert link.is_symlink()
        assert model.exists()
    link.unlink()
    assert models("rm", "fox-Q8_0", "--delete")[0] == ExitCode.OK


def test_a_model_in_a_linked_folder_is_not_removed(models, home, tmp_path):
    folder, elsewhere = home / "data" / "models", tmp_path / "elsewhere" / "lm"
    elsewhere.mkdir(parents=True)
    folder.mkdir(parents=True, exist_ok=True)
    (elsewhere / "own.gguf").write_bytes(EMBER_DRAFT.read_bytes())
    (folder / "lm").symlink_to(elsewhere)
    assert "own" in [entry["name"] for entry in models.json("list")]
    code, out, err = models("rm", "own", "--delete")
    assert (code, out) == (ExitCode.USAGE, "")
    assert f"{folder / 'lm'} leads to {elsewhere}. Nothing was removed" in err
    assert (elsewhere / "own.gguf").exists()


def test_a_link_to_a_file_that_is_no_model_of_the_list_is_removed(models, home):
    cache = home / "data" / "models" / "models--acme--fox"
    link, blob = cache / "snapshots" / "1" / "fox-small.gguf", cache / "blobs" / ("0" * 64)
    for place in (link, blob):
        place.parent.mkdir(parents=True)
    blob.write_bytes(EMBER_DRAFT.read_bytes())
    link.symlink_to(Path("..", "..", "blobs", blob.name))
    assert models("rm", "fox-small", "--delete")[0] == ExitCode.OK
    assert not link.is_symlink()
    assert blob.exists()


def test_import_and_forget(models, tmp_path):
    folder = tmp_path / "my models"
    folder.mkdir()
    (folder / "own model.gguf").write_bytes(EMBER_DRAFT.read_bytes())
    imported = models.json("import", str(folder))
    assert (imported["kind"], imported["models"]) == ("folder", ["own model"])
    assert "own model" in [entry["name"] for entry in models.json("list")]
    assert str(folder) in models("list")[1]
    assert models.json("import")["imported"] == [{"folder": str(folder), "kind": "folder"}]
    assert "no longer looked through" in models("import", str(folder), "--forget")[1]
    assert "own model" not in [entry["name"] for entry in models.json("list")]
    assert models("import", str(folder), "--forget")[0] == ExitCode.USAGE
    assert models("import", str(tmp_path / "nowhere"))[0] == ExitCode.USAGE


def test_a_server_for_one_chat_finds_the_models_of_other_programs(models, tmp_path):
    name, ollama, cache = "0" * 64, tmp_path / ".ollama" / "models", tmp_path / "hub" / "models--acme--fox"
    manifest = ollama / "manifests" / "registry.ollama.ai" / "library" / "fox" / "1b"
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{name}"}
    for folder in (manifest.parent, ollama / "blobs", cache / "blobs", cache / "snapshots" / "1"):
        folder.mkdir(parents=True)
    manifest.write_text(json.dumps({"layers": [layer]}))
    shutil.copyfile(EMBER, ollama / "blobs" / f"sha256-{name}")
    shutil.copyfile(EMBER_DRAFT, cache / "blobs" / name)
    (cache / "snapshots" / "1" / "fox-Q8_0.gguf").symlink_to(Path("..", "..", "blobs", name))
    assert models.json("import", str(ollama.parent))["models"] == ["fox:1b"]
    assert models.json("import", str(cache.parent))["models"] == ["fox-Q8_0"]
    for name in ("fox:1b", "fox-Q8_0"):
        _, _, _, named = _own_options(ServerChoice(model=name), 1)
        assert find_model(named).name == name


def test_a_folder_is_forgotten_as_it_was_imported_and_no_other_with_it(models, tmp_path):
    jan = tmp_path / "Jan" / "data"
    model = jan / "llamacpp" / "models" / "fox"
    model.mkdir(parents=True)
    (model / "model.yml").touch()
    assert models.json("import", str(jan))["kind"] == "Jan"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        models("import", str(tmp_path / name))
    assert models("import", str(tmp_path), "--forget")[0] == ExitCode.USAGE
    assert models("import", str(tmp_path / "one" / ".." / "Jan" / "data"), "--forget")[0] == ExitCode.OK
    kept = [place["folder"] for place in models.json("import")["imported"]]
    assert kept == [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("pull", "acme/none"), ExitCode.MODEL, "no repository acme/none"),
        (("pull", REPO), ExitCode.MODEL, "Say which one"),
        (("pull", f"{REPO}:Q2_K"), ExitCode.MODEL, "not one of them"),
        (("pull", "a b"), ExitCode.USAGE, "no name of a repository"),
        (("show", "acme/none"), ExitCode.MODEL, "no repository"),
        (("show", "nothing"), ExitCode.MODEL, "no model called"),
        (("search", "x", "--sort", "size"), ExitCode.USAGE, "size"),
    ],
)
def test_what_fails_says_so(arguments, code, says, models):
    found, _, err = models(*arguments)
    assert (found, says in err) == (code, True), err


def test_faults_of_the_network_have_their_exit_code(models, server, monkeypatch):
    server.fault("/api/models", Fault(status=429, headers={"Retry-After": "33"}))
    code, _, err = models("pull", f"{REPO}:Q8_0")
    assert (code, "in 33 s," in err) == (ExitCode.ERROR, True)
    monkeypatch.setenv("HF_ENDPOINT", "http://no-such-host.invalid")
    assert models("pull", f"{REPO}:Q8_0")[0] == ExitCode.UNREACHABLE
    monkeypatch.setenv("HF_ENDPOINT", "no address")
    assert models("pull", f"{REPO}:Q8_0")[0] == ExitCode.USAGE


def test_hub_settings(models, home, monkeypatch):
    monkeypatch.delenv("HF_ENDPOINT")
    mirror = "https://mirror.example"
    changed = models.json("hub", "--address", mirror, "--proxy", "http://me:secret@proxy.example:8080")
    proxy = "http://***@proxy.example:8080"
    assert changed == {"address": mirror, "proxy": proxy, "token": None, "offline": False}
    assert models.json("hub", "--proxy", "")["proxy"] is None
    assert models.json("hub")["address"] == mirror
    assert models("hub", "--address", "nowhere")[0] == ExitCode.USAGE
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example")
    assert "is kept, but HF_ENDPOINT is set" in models("hub", "--address", f"{mirror}/")[2]


def test_settings_that_cannot_be_written_are_told_with_what_to_check(models, home, tmp_path):
    (home / "config").write_text("in the way")
    (tmp_path / "mine").mkdir()
    for words in (("import", str(tmp_path / "mine")), ("hub", "--address", "https://mirror.example")):
        code, _, err = models(*words)
        assert (code, "Check its permissions" in err) == (ExitCode.ERROR, True), err


def test_login_checks_the_token(models, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    monkeypatch.setattr(sys.stdin, "readline", lambda limit: "hf_wrong\n", raising=False)
    code, out, err = models("login")
    assert (code, "does not accept" in err, "hf_wrong" in out + err) == (ExitCode.MODEL, True, False)
    monkeypatch.setattr(sys.stdin, "readline", lambda limit: "\n", raising=False)
    assert models("login")[0] == ExitCode.USAGE
    assert models("logout")[0] == ExitCode.OK


def test_a_download_says_soon_that_nothing_arrives(server, home):
    server.fault("fox-Q8_0.gguf", Fault(stall_after=100_000))
    process = started("models", "pull", f"{REPO}:Q8_0")
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert "downloading" in lines[0]
    assert re.match(r"nothing has arrived for \d s, still trying \(Ctrl-C stops\): +\d%, ", lines[1])


def test_ctrl_c_leaves_what_the_same_command_goes_on_from(server, home):
    content = random.Random(4).randbytes(4_000_000)
    server.add("acme/slow-GGUF", {"slow-Q4_0.gguf": content})
    server.fault("slow-Q4_0.gguf", Fault(bytes_per_second=1e5))
    command = ("models", "pull", "acme/slow-GGUF")
    process = started(*command)
    assert process.stderr is not None
    assert "downloading" in process.stderr.readline()
    # More than is asked for below: what is on its way has not arrived.
    while server.n_content_bytes < 600_000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert "The same command goes on from there." in err
    assert "Traceback" not in err
    server.heal()
    n_before = server.n_content_bytes
    assert "is there and verified" in ran(*command).stdout
    assert server.n_content_bytes - n_before < len(content) - 250_000
