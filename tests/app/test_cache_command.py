"""Sizes on the command line, and the command that shows and deletes stored texts."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.terminal.text import parse_size
from app.environment.exit_codes import ExitCode
from app.environment.paths import HOME_VARIABLE
from app.settings.server_settings import USUAL_ENGINE
from core.values.errors import BadOption
from models.formatting.figures import size
from tests.app.conftest import Typed
from tests.support.commands import ROOT, command


def test_sizes_are_read_and_shown_in_a_unit_that_makes_them_short() -> None:
    texts = ("0", "12", "500M", "4g", "1GiB", " 2KB ")
    assert [parse_size(text, "--cache-ram") for text in texts] == [0, 12, 500 << 20, 4 << 30, 1 << 30, 2048]
    shown = [size(n) for n in (0, 999, 1_500, 2_400_000, 7_300_000_000)]
    assert shown == ["0 B", "999 B", "2 KB", "2.4 MB", "7.3 GB"]


def test_bad_sizes_are_refused_before_anything_is_loaded(typed: Typed) -> None:
    for text in ("", "-1", "4 G", "1.5G", "much", "9" * 16):
        with pytest.raises(BadOption, match="--cache-ram: write for example 500M, 4G, or 0"):
            parse_size(text, "--cache-ram")
    code, _, err = typed("serve", "--cache-disk", "lots")
    assert (code, "'lots' is no size for --cache-disk" in err) == (ExitCode.USAGE, True)
    with pytest.raises(BadOption, match="cache in RAM"):
        replace(USUAL_ENGINE, cache_ram=-1)


def test_stored_texts_are_shown_and_deleted(home: Path, typed: Typed) -> None:
    folder = home / "cache" / "prefixes" / "00"
    folder.mkdir(parents=True)
    (folder / "aa.kv").write_bytes(bytes(5_000))
    assert typed("cache") == (0, f"5 KB in {folder.parent}\n", "")
    cleared = typed("cache", "--clear", "--json")[1]
    assert json.loads(cleared) == {"folder": str(folder.parent), "bytes": 5_000, "cleared": True}
    assert not folder.exists()
    assert typed("cache", "--clear")[0] == 0


def test_a_home_that_is_not_absolute_is_the_same_for_processes_in_other_folders(tmp_path: Path) -> None:
    environment = {**os.environ, HOME_VARIABLE: "my home", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command("cache", "--json"), cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)["folder"] == str(tmp_path / "my home" / "cache" / "prefixes")
