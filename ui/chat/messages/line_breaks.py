"""Where lines may break: between words, as long as laying them out that way is not slow."""

from __future__ import annotations

from PySide6.QtGui import QTextOption

# For each line Qt reads on to the end of the word that does not fit: a word of 200,000 characters takes a second, and
# again at each width and each key.
LONGEST_WORD = 10_000


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Return how to wrap ``text``: with a word of many pages, as an encoded file is one, lines break anywhere."""
    if len(text) > LONGEST_WORD and max(map(len, text.split()), default=0) > LONGEST_WORD:
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
