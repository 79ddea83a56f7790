"""``slipstream desktop --install`` and ``--uninstall``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.environment.exit_codes import ExitCode
from tests.app.conftest import Typed

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktops after XDG")


def test_it_goes_into_the_menus_and_out_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    entry = tmp_path / "share" / "applications" / "slipstream.desktop"
    assert str(entry) in typed("desktop", "--install")[1]
    launcher = Path(__file__).resolve().parents[2] / "slipstream"
    assert str(launcher) in entry.read_text()
    assert typed("desktop", "--uninstall")[0] == ExitCode.OK
    assert not entry.exists()
    assert "was not" in typed("desktop", "--uninstall")[1]
    assert typed("desktop", "--install", "--uninstall")[0] == ExitCode.USAGE
    (tmp_path / "share" / "applications").rmdir()
    (tmp_path / "share" / "applications").write_text("in the way")
    code, _, err = typed("desktop", "--install")
    assert (code, "cannot be written" in err) == (ExitCode.ERROR, True)
