"""What a desktop finds of Slipstream in the XDG folders, and that a user has one window."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ui.platform.desktop_entry import MIME_TYPE, DesktopEntry, EntryRefused
from ui.platform.display import ACTIVATION_TOKEN
from ui.platform.single_instance import SingleInstance

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktops after XDG")


def made(folder: Path, launcher: str = "/opt/slip stream/slipstream") -> DesktopEntry:
    return DesktopEntry(Path(launcher), folder / "share", folder / "config")


def test_name_icon_and_files_come_and_go(tmp_path: Path) -> None:
    entry = made(tmp_path)
    assert not entry.is_installed
    entry.install()
    entry.install()
    assert entry.is_installed
    assert not made(tmp_path, "/elsewhere/slipstream").is_installed, "another copy is not this one"
    text = entry.files.entry.read_text()
    assert f"MimeType={MIME_TYPE};" in text
    assert f"Icon={entry.files.icon.stem}" in text
    assert "GenericName=Language models\nGenericName[de]=Sprachmodelle\n" in text
    validate = shutil.which("desktop-file-validate")
    if validate is not None:
        assert subprocess.run([validate, str(entry.files.entry)], check=False).returncode == 0
    if shutil.which("update-mime-database") is not None:
        assert f"{MIME_TYPE}:*.gguf" in (tmp_path / "share" / "mime" / "globs").read_text()
    entry.start_at_login(True)
    assert entry.starts_at_login
    assert entry.uninstall()
    assert not entry.uninstall()
    assert not entry.is_installed
    assert not entry.starts_at_login
    if shutil.which("update-mime-database") is not None:
        assert MIME_TYPE not in (tmp_path / "share" / "mime" / "globs").read_text()


@pytest.mark.parametrize("folder", ["/opt/plain", "/home/a b", '/odd/"$HOME" `x` \\y', "/füx/狐"])
def test_a_folder_with_any_name_is_started(tmp_path: Path, folder: str) -> None:
    entry = made(tmp_path, f"{folder}/slipstream")
    entry.install()
    line = next(line for line in entry.files.entry.read_text().splitlines() if line.startswith("Exec="))
    # First a string of the file, then an argument in quotes, whose rules are those of a shell.
    command = f"printf '%s\\n' {line.removeprefix('Exec=')}".replace("\\\\", "\\")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{folder}/slipstream", "desktop", "%f"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "share").write_text("in the way")
    with pytest.raises(EntryRefused, match="cannot be written"):
        made(tmp_path).install()


ROOT = Path(__file__).resolve().parents[2]
SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from ui.platform.single_instance import SingleInstance
application = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
print(instance.claim(), instance.ask_other(sys.argv[2]), instance.holder)
"""


def test_a_second_start_asks_the_first_one_to_show_itself(
    qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ACTIVATION_TOKEN, "")
    first = SingleInstance(tmp_path)
    assert first.claim()
    file = str(tmp_path / "a model\nof 狐.gguf")
    child = [sys.executable, "-c", SECOND, str(tmp_path), file]
    environment = {**os.environ, ACTIVATION_TOKEN: "of a double click"}
    second = subprocess.Popen(child, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(2.5)  # the first one is busy, as when it starts beside other work
    with qtbot.waitSignal(first.asked) as asked:
        pass
    qtbot.waitUntil(lambda: second.poll() is not None)
    assert second.communicate()[0].split() == ["False", "True", str(os.getpid())]
    assert asked.args == [file]
    assert os.environ[ACTIVATION_TOKEN] == "of a double click"  # with which Wayland lets the window come to the front
    first.release()
    third = SingleInstance(tmp_path)
    assert third.claim()
    third.release()


def test_a_second_start_asks_where_no_other_user_can_answer(qtbot) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path may not be long
        instance = SingleInstance(Path(folder))
        assert instance.claim()
        assert [name for name in os.listdir(folder) if (Path(folder) / name).is_socket()] == ["desktop.socket"]
        instance.release()


def test_without_a_place_for_the_lock_the_window_opens_all_the_same(qtbot, tmp_path: Path) -> None:
    instance = SingleInstance(tmp_path / "missing" / "folder")
    assert instance.claim()
    instance.release()
