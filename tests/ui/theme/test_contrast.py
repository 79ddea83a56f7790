"""Every palette can be read: WCAG 2's AA for all text, AAA for the palettes of high contrast."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.contrast import contrast
from ui.theme.tokens import ACCENTS, CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT, Palette, with_accent

GROUNDS = ("canvas", "sidebar", "panel", "raised", "bubble", "hover")
# What is written in a colour, and what it is written on.
PAIRS = (
    *(("text", ground) for ground in (*GROUNDS, "pressed", "accent_soft", "selection", "danger_soft", "warning_soft")),
    *product(("muted", "accent", "danger", "warning"), GROUNDS),
    ("muted", "pressed"),  # the second line of a row that is chosen
    *((kind, f"{kind}_soft") for kind in ("accent", "danger", "warning")),
    *(("on_accent", ground) for ground in ("accent", "accent_hover")),
    *((f"code_{kind}", "code") for kind in ("text", "muted", "keyword", "string", "number", "name", "type")),
    ("canvas", "text"),
)
PALETTES = [with_accent(palette, name) for palette in (LIGHT, DARK) for name in ACCENTS]
TEXT, LARGE_CONTRAST, EDGE = 4.5, 7.0, 3.0


def too_faint(palette: Palette, least: float) -> dict[tuple[str, str], float]:
    found = {pair: contrast(getattr(palette, pair[0]), getattr(palette, pair[1])) for pair in PAIRS}
    return {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < least}


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: f"{palette.name} {palette.accent}")
def test_all_text_can_be_read(palette: Palette) -> None:
    assert too_faint(palette, TEXT) == {}
    assert all(contrast(palette.focus, getattr(palette, ground)) >= EDGE for ground in GROUNDS)


@pytest.mark.parametrize("palette", [*PALETTES, CONTRAST_LIGHT, CONTRAST_DARK], ids=lambda palette: palette.name)
def test_how_full_a_bar_is_can_be_seen(palette: Palette) -> None:
    fills = ("accent", "muted", "warning")  # of gauges, also idle ones, and of what is nearly full
    assert all(contrast(getattr(palette, fill), palette.pressed) >= EDGE for fill in fills)


@pytest.mark.parametrize("palette", [CONTRAST_LIGHT, CONTRAST_DARK], ids=lambda palette: palette.name)
def test_high_contrast_is_higher_and_shows_the_edges_of_what_can_be_used(palette: Palette) -> None:
    assert too_faint(palette, LARGE_CONTRAST) == {}
    edges = {name: contrast(getattr(palette, name), palette.canvas) for name in ("border", "border_strong", "focus")}
    assert {name: ratio for name, ratio in edges.items() if ratio < EDGE} == {}
    assert contrast(palette.border, palette.pressed) >= EDGE, "the edge of a row that is chosen"


@pytest.mark.parametrize("palette", [CONTRAST_LIGHT, CONTRAST_DARK], ids=lambda palette: palette.name)
def test_in_high_contrast_a_flat_button_that_cannot_be_used_is_seen_and_looks_so(palette: Palette) -> None:
    others = (palette.canvas, palette.muted, palette.text)
    assert all(contrast(palette.disabled, other) >= EDGE for other in others)
