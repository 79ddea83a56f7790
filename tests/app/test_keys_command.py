"""``slipstream keys``, and a running server that notices what it changes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import openai
import pytest

from app.client.server_process import ServerProcess
from app.environment.exit_codes import ExitCode
from app.environment.paths import config_folder
from app.settings.api_keys import KeyStore, endpoint_key
from core.values.errors import SlipstreamError
from tests.app.conftest import Typed
from tests.support.commands import ROOT
from tests.support.disks import failing_disk
from tests.support.fork_server import ForkedServer


@pytest.fixture
def keys(typed: Typed) -> Typed:
    return partial(typed, "keys")


def made(keys: Typed, name: str) -> str:
    code, out, _ = keys("add", name, "--json")
    assert code == ExitCode.OK
    return json.loads(out)["key"]


def test_a_key_is_shown_once_and_kept_as_a_hash_that_only_the_user_can_read(keys: Typed, home: Path) -> None:
    code, out, _ = keys("add", "My laptop")
    assert code == ExitCode.OK
    key = out.splitlines()[-1]
    assert len(key) > 40
    (file,) = home.rglob("api-keys.json")
    assert key not in file.read_text()
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code, out, _ = keys("list")
    assert (code, key in out) == (ExitCode.OK, False)
    assert "My laptop" in out
    assert "not used yet" in out
    store = KeyStore()
    assert store.name_of(key.encode()) == "My laptop"
    assert store.name_of(key[:-1].encode()) is None
    store.note_use("My laptop")
    assert "not used yet" not in keys("list")[1]
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_key_that_nobody_saw_is_not_kept(home: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "app", "keys", "add", "laptop", *words]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == ExitCode.ERROR
    assert done.stderr.splitlines() == [
        "The key laptop could not be shown, so it is not kept.",
        "Error: The output cannot be written: No space left on device.",
    ]
    assert KeyStore().is_empty


def test_a_key_may_manage_where_it_is_let(keys: Typed, home: Path) -> None:
    phone, laptop = made(keys, "phone").encode(), json.loads(keys("add", "laptop", "--manage", "--json")[1])["key"]
    store = KeyStore()

    def managers() -> list[str]:
        return [key.name for key in store.all() if key.may_manage]

    assert (store.may_manage(phone), store.may_manage(laptop.encode()), managers()) == (False, True, ["laptop"])
    assert json.loads(keys("change", "phone", "--manage", "--json")[1]) == {"name": "phone", "may_manage": True}
    assert keys("change", "laptop", "--use-only")[1] == "laptop may use models only.\n"
    assert (store.may_manage(phone), store.may_manage(laptop.encode()), managers()) == (True, False, ["phone"])
    rows = [line.split()[:2] for line in keys("list")[1].splitlines()]
    assert rows == [["phone", "manages"], ["laptop", "uses"]]
    (file,) = home.rglob("api-keys.json")
    file.write_text(file.read_text().replace('"may_manage"', '"of_old"'))
    assert (store.may_manage(phone), managers()) == (False, []), "it was made before keys could be let"
    assert not store.may_manage(b"slip-none")


def test_names_that_cannot_be_are_refused_with_a_sentence(keys: Typed) -> None:
    made(keys, "editor")
    for arguments, words in (
        (("add", "editor"), "already: revoke it first"),
        (("add", "two\nlines"), "a name has up to 64"),
        (("add", ""), "a name has up to 64"),
        (("change", "nobody", "--manage"), "There is no key called 'nobody'. Keys: editor."),
        (("change", "editor"), "Missing option '--manage'"),
        (("revoke", "nobody"), "There is no key called 'nobody'. Keys: editor."),
    ):
        code, out, err = keys(*arguments)
        assert (code, out) == (ExitCode.USAGE, "")
        assert words in err


def test_a_file_that_cannot_be_read_lets_nobody_in(keys: Typed, home: Path) -> None:
    key = made(keys, "editor")
    (file,) = home.rglob("api-keys.json")
    file.write_text("{ broken")
    store = KeyStore()
    for _ in range(2):
        assert not store.is_empty
        assert store.name_of(key.encode()) is None
    with pytest.raises(SlipstreamError, match="damaged"):
        store.all()


def test_a_server_does_not_start_with_keys_that_cannot_be_read(keys: Typed, typed: Typed, home: Path) -> None:
    made(keys, "editor")
    (file,) = home.rglob("api-keys.json")
    file.unlink()
    file.mkdir()
    code, _, err = typed("serve", "--port", "0")
    assert (code, f"{file} cannot be read: Is a directory. Check its permissions." in err) == (ExitCode.ERROR, True)


@pytest.fixture
def serving(keys: Typed, tmp_path: Path) -> Iterator[ServerProcess]:
    (tmp_path / "keys.txt").write_text("# for the team\nteam-1\n\nteam-2\n")
    process = ForkedServer(["--no-draft", "--api-key-file", str(tmp_path / "keys.txt")])
    process.wait_listening()
    yield process
    process.stop()


def test_a_running_server_notices_keys_that_are_added_and_revoked(serving: ServerProcess, keys: Typed) -> None:
    url = serving.wait_listening()

    def status(key: str, header: str = "authorization") -> int:
        value = f"Bearer {key}" if header == "authorization" else key
        return httpx.get(f"{url}/v1/models", headers={header: value}).status_code

    tried = (serving.api_key, "team-1", "team-2", "team-3", "# for the team")
    assert [status(key) for key in tried] == [200, 200, 200, 401, 401]
    key = made(keys, "editor")
    assert (status(key), status(key, "x-api-key"), status(key + "x")) == (200, 200, 401)
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=60) as client:
        seen: list[str | None] = []

        def look() -> None:
            for one in ("team-1", key):
                listed = httpx.get(f"{url}/slipstream/requests", headers={"x-api-key": one}).json()["data"]
                seen.extend(request["who"] for request in listed)

        stream = client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": "Tell me a story."}],
            max_tokens=400,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        next(iter(stream))
        watching = threading.Thread(target=look)
        watching.start()
        watching.join()
        stream.close()
    assert seen == ["editor"]
    listed = json.loads(keys("list", "--json")[1])
    assert [(one["name"], one["used"] is not None) for one in listed] == [("editor", True)]
    assert keys("revoke", "editor")[0] == ExitCode.OK
    assert (status(key), status("team-1")) == (401, 200)


def test_a_server_without_a_key_takes_none_until_there_is_one(keys: Typed, home: Path) -> None:
    from app.server.http.keys import ApiKeys
    from app.settings.server_settings import ServerSettings

    server = ApiKeys(ServerSettings())
    assert not server.is_needed
    key = made(keys, "phone")
    assert server.is_needed
    names = [server.name_of(one) for one in (key.encode(), server.local.encode(), b"x")]
    assert names == ["phone", "", None]
    assert not ServerSettings(hosts=("0.0.0.0",), has_named_keys=True).is_loopback


def test_the_key_of_the_window_stays_where_its_disk_does_not_give_it_now(home: Path) -> None:
    key = endpoint_key()
    with failing_disk(config_folder() / "endpoint-key"), pytest.raises(SlipstreamError, match="Input/output error"):
        endpoint_key()
    assert endpoint_key() == key
