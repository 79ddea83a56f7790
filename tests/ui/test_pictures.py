"""The page of pictures: what it shows is there, and all of it together is small."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
MOST_BYTES = 4_000_000


def test_the_page_shows_every_picture_and_they_are_small() -> None:
    shown = re.findall(r'src="([^"]+)"', (FOLDER / "README.md").read_text(encoding="utf-8"))
    pictures = sorted(FOLDER.glob("*.png"))
    assert sorted(shown) == [picture.name for picture in pictures]
    assert sum(picture.stat().st_size for picture in pictures) < MOST_BYTES
