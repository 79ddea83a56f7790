"""How large text is shown: the design's sizes in percent. The application carries the percentage."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from ui.theme.tokens import sized

PERCENTS = (80, 90, 100, 110, 125, 150)
USUAL = 100
_PROPERTY = "slipstreamTextPercent"


def text_percent() -> int:
    """Return how large text is shown at present."""
    application = QCoreApplication.instance()
    kept = application.property(_PROPERTY) if application is not None else None
    return kept if isinstance(kept, int) else USUAL


def set_text_percent(percent: int) -> None:
    """Let ``scaled`` give sizes in ``percent`` from now on; what is drawn already is left to its owner."""
    application = QCoreApplication.instance()
    if application is not None:
        application.setProperty(_PROPERTY, percent)


def scaled(pixels: int) -> int:
    """Return the design's pixels in the present size of text, for text and for what holds text."""
    return sized(pixels, text_percent())


def step(percent: int, by: int) -> int:
    """Return the size that is ``by`` steps larger than ``percent``, within what there is."""
    at = min(range(len(PERCENTS)), key=lambda index: abs(PERCENTS[index] - percent))
    return PERCENTS[min(max(at + by, 0), len(PERCENTS) - 1)]


def read_percent(kept: object) -> int:
    """Return the size that settings name; the usual one where they name none that there is."""
    text = str(kept)
    return int(text) if text in map(str, PERCENTS) else USUAL
