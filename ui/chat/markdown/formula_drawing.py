"""Draws LaTeX as SVG, after ziamath. No Qt here; safe on any thread."""

from __future__ import annotations

import re
from typing import NamedTuple

SIZE = 100.0  # of the font in a drawing; one em is so many of its units
COLOUR = "#123456"  # stands for the colour that a formula gets when it is shown
MAX_LATEX = 4_000  # characters; a longer formula would keep a processor busy for seconds
_VIEW = re.compile(r'viewBox="(-?[\d.]+) (-?[\d.]+) ([\d.]+) ([\d.]+)"')
_UNKNOWN = re.compile(r">\s*\\[A-Za-z]+\s*<")  # a command that is left over in MathML


class Drawing(NamedTuple):
    """A formula as an SVG image; ``width``, and what is above and below the line, in em."""

    svg: str
    width: float
    ascent: float
    descent: float


def draw(latex: str, is_display: bool) -> Drawing | None:
    """Return the drawing of a formula; None where it is wrong."""
    if len(latex) > MAX_LATEX:
        return None
    # They take 0.2 s to import: only the thread that draws pays for it.
    from latex2mathml.converter import convert
    from ziamath.config import config
    from ziamath.zmath import Latex

    config.svg2 = False  # Qt draws paths, and no references to symbols
    try:
        if _UNKNOWN.search(convert(latex)):
            return None
        svg = Latex(latex, size=SIZE, color=COLOUR, inline=not is_display).svg()
    except Exception:  # wrong LaTeX ends in errors of any kind there
        return None
    found = _VIEW.search(svg)
    if found is None:
        return None
    _, top, width, height = (float(part) / SIZE for part in found.groups())
    return Drawing(svg, width, -top, height + top)
