"""The page of pictures: what it shows is there, and all of it together is small. The tool that draws them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.screenshots import PICTURES, read_arguments

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
MOST_BYTES = 4_000_000


def test_the_page_shows_every_picture_and_they_are_small() -> None:
    shown = re.findall(r'src="([^"]+)"', (FOLDER / "README.md").read_text(encoding="utf-8"))
    pictures = sorted(FOLDER.glob("*.png"))
    assert sorted(shown) == [picture.name for picture in pictures]
    assert sum(picture.stat().st_size for picture in pictures) < MOST_BYTES


def test_the_tool_that_draws_them_takes_a_folder_and_states_and_explains_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, states = read_arguments([])
    assert folder == PICTURES
    assert len(states) > 30
    folder, states = read_arguments(["somewhere", "race", "empty"])
    assert str(folder) == "somewhere"
    assert [state.__name__ for state in states] == ["empty", "race"]
    with pytest.raises(SystemExit) as helped:
        read_arguments(["--help"])
    assert helped.value.code == 0
    assert "first_start" in capsys.readouterr().out
    for typed, problem in ((["somewhere", "rce"], "There is no state rce"), (["race"], "race is a state")):
        with pytest.raises(SystemExit) as refused:
            read_arguments(typed)
        assert refused.value.code == 2
        assert problem in capsys.readouterr().err
