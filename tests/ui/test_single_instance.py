"""One window per user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ui.platform.single_instance import SingleInstance

ROOT = Path(__file__).resolve().parents[2]
SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from ui.platform.single_instance import SingleInstance
application = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
print(instance.claim(), instance.ask_other(sys.argv[2]))
"""


def test_a_second_start_asks_the_first_one_to_show_itself(qtbot, tmp_path: Path) -> None:
    first = SingleInstance(tmp_path)
    assert first.claim()
    file = str(tmp_path / "a model\nof 狐.gguf")
    child = [sys.executable, "-c", SECOND, str(tmp_path), file]
    with qtbot.waitSignal(first.asked) as asked:
        second = subprocess.Popen(child, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    qtbot.waitUntil(lambda: second.poll() is not None)
    assert second.communicate()[0].split() == ["False", "True"]
    assert asked.args == [file]
    first.release()
    third = SingleInstance(tmp_path)
    assert third.claim()
    third.release()


def test_without_a_place_for_the_lock_the_window_opens_all_the_same(qtbot, tmp_path: Path) -> None:
    instance = SingleInstance(tmp_path / "missing" / "folder")
    assert instance.claim()
    instance.release()
