"""``slipstream desktop --install`` and ``--uninstall``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.cli.main import main
from app.environment.exit_codes import ExitCode

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktops after XDG")


def test_it_goes_into_the_menus_and_out_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    entry = tmp_path / "share" / "applications" / "slipstream.desktop"
    assert main(["desktop", "--install"]) == ExitCode.OK
    launcher = Path(__file__).resolve().parents[2] / "slipstream"
    assert str(launcher) in entry.read_text()
    assert str(entry) in capsys.readouterr().out
    assert main(["desktop", "--uninstall"]) == ExitCode.OK
    assert not entry.exists()
    assert main(["desktop", "--uninstall"]) == ExitCode.OK
    assert "was not" in capsys.readouterr().out
    assert main(["desktop", "--install", "--uninstall"]) == ExitCode.USAGE
    (tmp_path / "share" / "applications").rmdir()
    (tmp_path / "share" / "applications").write_text("in the way")
    assert main(["desktop", "--install"]) == ExitCode.ERROR
    assert "cannot be written" in capsys.readouterr().err
