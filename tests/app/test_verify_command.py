"""``slipstream verify``: what it prints, what its exit code means, and what it refuses."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app.cli import main as cli
from app.environment.exit_codes import ExitCode
from app.jobs.verify import prompt_file, verification
from app.jobs.verify.prompt_file import BUILT_IN, BadPromptFile, read_prompts
from app.jobs.verify.verification import Verification
from app.settings.server_settings import ServerSettings
from core.values.errors import BadOption
from tests.app.conftest import Typed
from tests.support.interruptions import take_wrongly
from tests.support.prompts import EMBER, chat
from tools.model_factory import gguf_factory, recurrent_factory

COPY = (
    "Repeat this: Ella was a happy bear who lived near the market. Ella had a blue kite and loved it very much. "
    "One sunny morning, Ella went to the market."
)


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here has folders of its own, and decodes a reply once: what its speed was does not matter."""
    monkeypatch.setattr(verification, "TIMED_SECONDS", 0.0)


@pytest.fixture
def verify(typed: Typed) -> Typed:
    return partial(typed, "verify", "--threads", "1")


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    entries = [{"messages": [{"role": "user", "content": COPY}], "kind": "copy"}, {"prompt": "def add(a, b):\n"}]
    path.write_text("\n\n".join(json.dumps(entry) for entry in entries))
    return path


# -- what it prints -------------------------------------------------------------------------------------------------


def test_the_json_has_what_is_promised(verify: Typed, prompts: Path) -> None:
    code, out, err = verify("--prompts", str(prompts), "--max-tokens", "40", "--seeds", "2", "--depth", "3", "--json")
    assert (code, err) == (ExitCode.OK, "")
    report = json.loads(out)
    assert set(report) == {"date", "machine", "versions", "model", "settings", "rows", "summary"}
    assert report["machine"]["logical_cores"] >= 1
    assert "llama-cpp-python" in report["versions"]
    assert (report["model"]["name"], report["model"]["draft"]) == ("ember-q8_0", "ember-draft-q8_0")
    assert report["model"]["n_threads"] == 1
    assert report["model"]["n_slots"] == ServerSettings().engine.n_slots, "attention and kernels as they are served"
    assert report["settings"]["depth"] == 3
    assert [(row["prompt"], row["line"], row["kind"], row["mode"], row["seed"]) for row in report["rows"]] == [
        (prompt, line, kind, mode, seed)
        for mode, seed in (("greedy", None), ("sampled", 1), ("sampled", 2))
        for prompt, line, kind in ((1, 1, "copy"), (2, 3, ""))
    ]
    for row in report["rows"]:
        assert row["identical"] == (row["difference"] is None)
        assert row["plain_tokens_per_s"] > 0 < row["drafted_tokens_per_s"]
        assert row["drafted"] >= row["accepted"] >= 0
    summary = report["summary"]
    assert summary["ok"]
    assert summary["drafted"] == sum(row["drafted"] for row in report["rows"]) > 0
    assert summary["accepted"] == sum(row["accepted"] for row in report["rows"]) > 0
    same = [row["identical"] for row in report["rows"] if row["mode"] == "greedy"]
    assert summary["identical_greedy"] == sum(same) / len(same)
    speeds = [row["speedup"] for row in report["rows"] if row["speedup"] is not None]
    assert summary["speedup_min"] == min(speeds)
    assert summary["control_min"] is None, "each was decoded plainly once"
    assert f"{summary['accepted']} of {summary['drafted']} drafted tokens" in summary["verdict"]


def test_a_table_and_a_verdict(verify: Typed, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "TIMED_SECONDS", 60.0)
    monkeypatch.setattr(verification, "MOST_TURNS", 2)
    code, out, err = verify("--prompts", str(prompts), "--max-tokens", "40", "--depth", "3")
    assert (code, err) == (ExitCode.OK, "")
    assert re.search(r"1 Repeat this: .*greedy", out)
    assert re.search(r"2 def add.*seed 1", out)
    assert out.splitlines()[-1].startswith("Drafting changed nothing")
    assert "drafted tokens were accepted" in out
    assert re.search(r"lowest \d\.\d\d \(plain decoding beside itself at worst \d\.\d\d\), each prompt", out)


def test_a_deep_model_with_lookups_alone_or_with_the_partner_it_is_loaded_with(verify: Typed, prompts: Path) -> None:
    deep = gguf_factory.cached(gguf_factory.Recipe(n_layers=12))
    words = ("--model", str(deep), "--prompts", str(prompts), "--max-tokens", "40", "--seeds", "0", "--json")
    # Always so many tokens: whether they pay depends on what else uses the cores.
    code, out, _ = verify("--lookup-only", "--depth", "3", *words)
    report = json.loads(out)
    assert (code, report["model"]["draft"]) == (ExitCode.OK, None)
    assert report["summary"]["accepted"] > 0
    code, out, _ = verify("--depth", "3", *words)
    assert (code, json.loads(out)["model"]["draft"]) == (ExitCode.OK, "ember-draft-q8_0")


def test_nothing_is_claimed_of_what_was_not_drafted_or_is_repeated(verify: Typed, tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("Once upon a time\n")
    code, out, _ = verify("--lookup-only", "--prompts", str(path), "--max-tokens", "3")
    assert code == ExitCode.OK
    assert "verifies nothing" in out
    both = tmp_path / "both.jsonl"
    messages = json.dumps({"messages": [{"role": "user", "content": COPY}]})
    both.write_text(f"{messages}\n{json.dumps({'prompt': chat(COPY)})}\n")
    out = verify("--prompts", str(both), "--max-tokens", "2", "--seeds", "0", "--json")[1]
    assert json.loads(out)["summary"]["repeated_prompts"] == 1, "the template writes the same prompt"


def test_drafting_that_costs_time_fails_with_a_sentence(
    verify: Typed, prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Verification, "is_slower", True)
    words = ("--prompts", str(prompts), "--max-tokens", "10", "--seeds", "0")
    code, out, _ = verify("--lookup-only", *words)
    assert code == ExitCode.SLOWER
    assert "Drafting COSTS time here" in out
    code, out, _ = verify(*words, "--depth", "3", "--json")
    assert code == ExitCode.OK, "always so many tokens, whether that pays or not"
    assert json.loads(out)["summary"]["ok"]


def test_a_changed_text_has_an_exit_code_of_its_own(
    verify: Typed, prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_wrongly(monkeypatch, 3)
    words = ("--prompts", str(prompts), "--max-tokens", "10")
    code, out, _ = verify(*words, "--json")
    assert code == ExitCode.TEXT_CHANGED
    report = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert not report["summary"]["ok"]
    assert report["summary"]["beyond_near_tie"] == 4
    difference = report["rows"][0]["difference"]
    assert (difference["position"], difference["drafted"]["token"], difference["near_tie"]) == (3, 77, False)
    assert math.isfinite(difference["gap"])
    assert difference["plain"]["text"]
    code, out, _ = verify(*words)
    assert code == ExitCode.TEXT_CHANGED
    assert "Drafting CHANGED what the model says" in out
    assert "DIFFERENT at 3" in out


def test_a_model_without_a_template_continues_the_built_in_prompts_as_they_are(
    verify: Typed, prompts: Path, tmp_path: Path
) -> None:
    entries = [entry for entry in gguf_factory.metadata_of(EMBER) if entry.key != "tokenizer.chat_template"]
    reader = gguf_factory.reader_of(EMBER)
    tensors = list(gguf_factory.tensors_of(reader, gguf_factory.Recipe()))
    model = gguf_factory.write(tmp_path / "bare.gguf", entries, tensors)
    code, out, _ = verify("--model", str(model), "--max-tokens", "2", "--seeds", "0", "--json")
    assert code == ExitCode.OK
    assert len(json.loads(out)["rows"]) == 12
    code, _, err = verify("--model", str(model), "--prompts", str(prompts))
    assert code == ExitCode.USAGE
    assert "Line 1 of" in err
    assert "no chat template" in err


# -- what it refuses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{bad", "it is not JSON"),
        ("[" * 100_000, "it is"),
        ("7", 'either "prompt" or "messages"'),
        ("{}", 'either "prompt" or "messages"'),
        ('{"prompt": "a", "messages": []}', 'either "prompt" or "messages"'),
        ('{"prompt": ""}', "at least one character"),
        ('{"prompt": 7}', "at least one character"),
        ('{"prompt": "a", "kind": 7}', '"kind" must be text'),
        ('{"messages": []}', "at least one message"),
        ('{"messages": "hi"}', "at least one message"),
        ('{"messages": [{"role": "user"}]}', 'a "role" and a "content"'),
        ('{"messages": ["hi"]}', 'a "role" and a "content"'),
        ('{"messages": [{"role": "wizard", "content": "a"}]}', "must be one of system"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(f'{{"prompt": "good"}}\n\n{line}\n')
    with pytest.raises(BadPromptFile, match=re.escape(f"Line 3 of {path} is no prompt: ")) as error:
        read_prompts(path)
    assert reason in error.value.message


def test_files_that_cannot_be_prompts_are_named_and_plain_lines_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text(" \n\n")
    with pytest.raises(BadPromptFile, match="has no prompts"):
        read_prompts(path)
    path.write_bytes(b"fine\n\xff\xfe")
    with pytest.raises(BadPromptFile, match=r"not UTF-8 text \(byte 0xff in line 2\)"):
        read_prompts(path)
    path.write_bytes(b"a" * 100)
    monkeypatch.setattr(prompt_file, "MAX_BYTES", 99)
    with pytest.raises(BadPromptFile, match="is larger than"):
        read_prompts(path)
    path.write_text("a\n" * 12)
    monkeypatch.setattr(prompt_file, "MAX_PROMPTS", 10)
    with pytest.raises(BadPromptFile, match="has 12 prompts, more than 10"):
        read_prompts(path)
    if (endless := Path("/dev/zero")).exists():
        with pytest.raises(BadPromptFile, match="is larger than"):
            read_prompts(endless)
    for name in ("missing.txt", ".", "a\0b"):
        with pytest.raises(BadPromptFile, match=r"cannot be read|NUL character"):
            read_prompts(tmp_path / name)
    path.write_bytes("\ufeffOne \r\n\n  \nTwo\u2028still two\n".encode())
    monkeypatch.undo()
    assert [(prompt.line, prompt.text) for prompt in read_prompts(path)] == [(1, "One "), (4, "Two\u2028still two")]
    kinds = [prompt.kind for prompt in read_prompts(BUILT_IN)]
    assert {kind: kinds.count(kind) for kind in kinds} == {"story": 3, "code": 3, "rename": 3, "copy": 3}


def test_a_prompt_longer_than_the_context_is_named(verify: Typed, tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("short\n" + "long " * 400)
    code, out, err = verify("--prompts", str(path), "--ctx", "64")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "The prompt in line 2 cannot be used" in err
    assert "the available context size of 64" in err


def test_a_template_that_refuses_the_messages_is_named(verify: Typed, tmp_path: Path) -> None:
    source = "{{ raise_exception('I say nothing') }}"
    entries = [
        gguf_factory.replace(entry, value=source) if entry.key == "tokenizer.chat_template" else entry
        for entry in gguf_factory.metadata_of(EMBER)
    ]
    tensors = list(gguf_factory.tensors_of(gguf_factory.reader_of(EMBER), gguf_factory.Recipe()))
    model = gguf_factory.write(tmp_path / "mute.gguf", entries, tensors)
    code, _, err = verify("--model", str(model))
    assert code == ExitCode.USAGE
    assert "Line 1 of" in err
    assert "I say nothing" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--draft", "ember-draft-q8_0", "--lookup-only"), "leave out one of them"),
        (("--max-tokens", "0"), "0 is not in the range"),
        (("--seeds", "-1"), "-1 is not in the range"),
        (("--depth", "17"), "17 is not in the range"),
        (("--threads", "1000"), "threads must be between 1 and 512"),
        (("--prompts", "/nowhere/prompts.txt"), "cannot be read: No such file"),
        (("--model", "ember-draft-q8_0", "--draft", "ember-q8_0"), "(12 MB) is larger than"),
    ],
)
def test_options_that_cannot_be_used(verify: Typed, words: tuple[str, ...], sentence: str) -> None:
    code, out, err = verify(*words)
    assert (code, out) == (ExitCode.MODEL if "--model" in words else ExitCode.USAGE, "")
    assert sentence in " ".join(err.split())


def test_a_model_with_a_running_state(verify: Typed, tmp_path: Path) -> None:
    model = recurrent_factory.mamba(tmp_path / "mamba.gguf")
    code, out, err = verify("--model", str(model), "--lookup-only", "--depth", "2", "--max-tokens", "16")
    assert code == ExitCode.OK, out + err
    assert issubclass(BadPromptFile, BadOption)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is a signal on the others")
@pytest.mark.parametrize("moment", ["load", "run"])
def test_ctrl_c_ends_it_without_a_traceback(tmp_path: Path, home: Path, moment: str) -> None:
    """The signal is sent by the process itself, as soon as it is at that moment."""
    place = {"load": "core.loading.load_engine.read_facts", "run": "core.engine.engine.Engine.step"}[moment]
    owner, _, name = place.rpartition(".")
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import os, pkgutil, signal, sys\n"
        "from app.cli import main\n"
        "import core.engine.engine, core.loading.load_engine\n"
        f"owner = pkgutil.resolve_name({owner!r})\n"
        f"original = getattr(owner, {name!r})\n"
        "def interrupted(*arguments):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return original(*arguments)\n"
        f"setattr(owner, {name!r}, interrupted)\n"
        "sys.exit(main.main(['verify']))\n"
    )
    root = Path(cli.__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "")
