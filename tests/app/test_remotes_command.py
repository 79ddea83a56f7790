"""``slipstream remotes`` against a server with a key, and a keyring in a file."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from unittest.mock import ANY

import keyring
import pytest

from app.client.http_client import Client
from app.environment.exit_codes import ExitCode
from app.server.remotes.store import RemoteStore, key_of
from core.values.errors import SlipstreamError
from tests.support.file_keyring import FileKeyring
from tests.support.fork_server import ForkedServer
from tools.stand_ins.fake_openai import FakeServer

KEY = "sk-very-secret"


@pytest.fixture
def remotes(typed, tmp_path: Path, fake: FakeServer, monkeypatch):
    """Runs a command, with what is typed while it runs."""
    fake.api_key = KEY
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "keys.json"))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())

    def run(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        return typed("remotes", *words)

    yield run
    keyring.set_keyring(before)


def test_a_remote_is_added_listed_tested_and_removed(remotes, fake, home, tmp_path):
    code, out, err = remotes("add", "Rack", fake.url, "--key-stdin", "--fallback", "ember-q8_0", stdin=f"{KEY}\n")
    assert (code, err) == (ExitCode.OK, "")
    assert f"Added rack at {fake.url}/v1." in out
    assert "unencrypted" in out
    assert "has 2 models, as rack/ember-q8_0" in out
    assert KEY not in (home / "config" / "remotes.json").read_text()
    assert KEY in (tmp_path / "keys.json").read_text()
    (listed,) = json.loads(remotes("list", "--json")[1])
    assert (listed["has_key"], listed["fallback"], listed["problem"]) == (True, "ember-q8_0", None)
    assert "rack/ember-draft-q8_0" in remotes("test", "rack")[1]
    assert remotes("remove", "rack") == (ExitCode.OK, "Removed rack.\n", "")
    assert KEY not in (tmp_path / "keys.json").read_text()
    assert remotes("list")[1] == "There are no remotes.\n"
    named = remotes("add", "rack", fake.url, "--key-stdin", "--model", "nope", "--model", "ember-q8_0", stdin=KEY)
    assert "has 1 model, as rack/ember-q8_0.\nIt does not list nope." in named[1]


def test_a_remote_that_does_not_answer_is_kept_and_said(remotes, fake):
    code, out, _ = remotes("add", "rack", fake.url, "--no-key")
    assert code == ExitCode.OK
    assert "wants a key: The API key is wrong." in out
    assert remotes("test", "rack")[0] == ExitCode.UNREACHABLE
    fake.stop()
    code, _, err = remotes("test", "rack")
    assert code == ExitCode.UNREACHABLE
    assert f"The remote rack ({fake.url}/v1) does not answer" in err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:8080", "http://localhost:8080/v1"), ("192.168.1.20:8000/api", "http://192.168.1.20:8000/api"),
        ("rack", "http://rack/v1"), ("rack.local/", "http://rack.local/v1"),
        ("api.host.example/v1", "https://api.host.example/v1"), ("10.example.org", "https://10.example.org/v1"),
    ],
)  # fmt: skip
def test_an_address_without_its_protocol_is_in_the_clear_only_nearby(tmp_path, typed, meant):
    assert RemoteStore(tmp_path / "remotes.json").add("rack", typed).url == meant


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("add", "a/b", "http://x"), "cannot name"),
        (("add", "a", "ftp://x"), "not the address"),
        (("add", "a", "http://me:pw@x/v1"), "Leave names"),
        (("add", "a", "http://x:99999"), "not the address"),
        (("add", "a", "http://x", "--fallback", "b/c"), "no model of this machine"),
        (("remove", "nobody"), "There are none"),
        (("test", "nobody"), "There are none"),
    ],
)
def test_what_cannot_be_is_refused(remotes, arguments, word):
    code, _, err = remotes(*arguments)
    assert (code, word in err) == (ExitCode.USAGE, True)


def test_a_mistyped_address_is_told_before_a_key_is_asked_for(remotes):
    for words in (("add", "a/b", "http://x"), ("add", "a", "ftp://x")):
        assert remotes(*words, "--key-stdin", stdin=KEY)[0] == ExitCode.USAGE
        assert sys.stdin.read() == KEY


def test_a_model_that_is_not_here_yet_may_be_named_to_step_in_and_is_told(remotes):
    added = "add", "a", "http://127.0.0.1:1", "--no-key", "--fallback"
    code, out, err = remotes(*added, "nope")
    assert (code, "No model of this machine is named nope: it steps in once one is" in out + err) == (0, True)
    _, out, err = remotes(*added, "ember-q8_0")
    assert "No model of this machine" not in out + err


def test_a_key_is_for_one_address_only(remotes, fake, home, monkeypatch):
    remotes("add", "rack", fake.url, "--key-stdin", stdin=KEY)
    store = RemoteStore()
    assert key_of(store.named("rack")) == KEY
    file = home / "config" / "remotes.json"
    file.write_text(file.read_text().replace("127.0.0.1", "localhost"))
    moved = store.named("rack")
    assert (moved.url.partition("//")[2][:9], key_of(moved)) == ("localhost", None)
    monkeypatch.setenv("SLIPSTREAM_REMOTE_KEY_RACK", "other")
    assert key_of(moved) == "other"


def test_a_variable_that_holds_no_key_is_named_and_what_it_holds_is_not_shown(remotes, fake, monkeypatch):
    remotes("add", "rack", fake.url, "--no-key")
    monkeypatch.setenv("SLIPSTREAM_REMOTE_KEY_RACK", "sk-one\nsk-two")
    code, _, err = remotes("test", "rack")
    assert (code, "SLIPSTREAM_REMOTE_KEY_RACK" in err, "sk-" in err) == (ExitCode.UNREACHABLE, True, False)


def removed(store: RemoteStore, url: str) -> None:
    store.remove("rack")


def added_without_a_key(store: RemoteStore, url: str) -> None:
    store.add("rack", url)


@pytest.mark.parametrize("change", [removed, added_without_a_key])
def test_a_key_that_is_given_beside_another_change_is_not_lost(remotes, fake, monkeypatch, change):
    store, delete = RemoteStore(), FileKeyring.delete_password
    store.add("rack", fake.url, key=KEY)

    def delete_late(*words: object) -> None:  # a keyring may ask its owner first
        monkeypatch.setattr(FileKeyring, "delete_password", delete)
        RemoteStore().add("rack", fake.url, key="another")
        delete(*words)

    monkeypatch.setattr(FileKeyring, "delete_password", delete_late)
    change(store, fake.url)
    assert key_of(store.named("rack")) == "another"


def test_a_key_is_not_lost_where_one_without_is_said_while_it_is_kept(remotes, fake, monkeypatch, tmp_path):
    store, keep = RemoteStore(), FileKeyring.set_password
    store.add("rack", fake.url, key=KEY)

    def keep_early(*words: object) -> None:
        monkeypatch.setattr(FileKeyring, "set_password", keep)
        keep(*words)
        RemoteStore().add("rack", fake.url)

    monkeypatch.setattr(FileKeyring, "set_password", keep_early)
    assert key_of(store.add("rack", fake.url, key="another")) == "another"
    assert key_of(store.named("rack")) == "another"
    assert KEY not in (tmp_path / "keys.json").read_text()


def test_a_remote_that_cannot_be_kept_leaves_all_keys_as_they_were(remotes, fake, home, tmp_path):
    store = RemoteStore()
    store.add("rack", fake.url, key=KEY)
    before = (tmp_path / "keys.json").read_text()
    file = home / "config" / "remotes.json"
    file.write_text(file.read_text().replace('"version": 1', '"version": 99'))
    with pytest.raises(SlipstreamError, match="newer Slipstream"):
        store.add("rack", fake.url, key="another")
    assert (tmp_path / "keys.json").read_text() == before


def test_a_key_that_an_earlier_version_kept_is_found_and_forgotten(remotes, fake, home, tmp_path):
    store = RemoteStore()
    url = store.add("rack", fake.url).url
    keyring.set_password("slipstream remotes", f"rack {url}", KEY)
    file = home / "config" / "remotes.json"
    file.write_text(file.read_text().replace('"key": false', '"key": true'))
    assert key_of(store.named("rack")) == KEY
    store.remove("rack")
    assert KEY not in (tmp_path / "keys.json").read_text()


def test_without_a_keyring_the_key_is_written_nowhere(remotes, fake, home):
    from keyring.backends.fail import Keyring

    keyring.set_keyring(Keyring())
    code, _, err = remotes("add", "rack", fake.url, "--key-stdin", stdin=KEY)
    assert code == ExitCode.USAGE
    assert "SLIPSTREAM_REMOTE_KEY_RACK" in err
    assert not (home / "config" / "remotes.json").exists()


def test_a_remotes_model_chats_without_an_address_and_loads_no_model_here(remotes, fake, typed, monkeypatch):
    def chat(model: str) -> tuple[int, str, str]:
        return typed("chat", "--model", model, "Hi", "--max-tokens", "9")

    fake.api_key = None
    remotes("add", "rack", fake.url, "--no-key")
    assert chat("rack/ember-q8_0") == (ExitCode.OK, "Hello there.\n", ANY)
    assert (fake.requests[-1]["model"], fake.requests[-1]["max_tokens"]) == ("ember-q8_0", 9)
    fake.error = 404, {"error": {"message": "No such model.", "type": "x", "param": "model", "code": "model_not_found"}}
    code, out, err = chat("rack/other")
    assert (code, out) == (ExitCode.MODEL, "")
    assert "No such model." in err
    assert chat(f"{'a' * 300}/other")[0] == ExitCode.MODEL
    fake.error = None
    with ForkedServer(["--on-demand"], listed=True) as server:
        url = server.wait_listening()
        monkeypatch.setattr("app.cli.chat.chat_server.ServerProcess", None)
        assert chat("rack/ember-q8_0") == (ExitCode.OK, "Hello there.\n", ANY)
        assert Client(url, server.api_key).state().phase == "empty", (
            "the server that runs need not load anything either"
        )
        remotes("add", "gone", "http://127.0.0.1:1", "--no-key")
        assert chat("gone/any")[0] == ExitCode.UNREACHABLE
