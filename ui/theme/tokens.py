"""Design tokens: the light and the dark palette, and one scale each for space, type and corners."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by their job, as ``#rrggbb``."""

    name: str
    is_dark: bool
    canvas: str  # the chat
    sidebar: str
    panel: str  # side panel, cards
    raised: str  # composer, menus, fields
    bubble: str  # what the user said
    hover: str
    pressed: str
    border: str
    border_strong: str  # edges of fields that can be typed into
    text: str
    muted: str
    accent: str
    accent_hover: str
    on_accent: str
    accent_soft: str
    focus: str
    selection: str
    danger: str
    danger_soft: str
    warning: str
    warning_soft: str
    code: str
    code_text: str
    code_muted: str
    code_keyword: str
    code_string: str
    code_number: str
    code_name: str
    code_type: str


LIGHT = Palette(
    name="light",
    is_dark=False,
    canvas="#ffffff",
    sidebar="#f5f6f7",
    panel="#fafbfb",
    raised="#ffffff",
    bubble="#eef1f2",
    hover="#e9ecee",
    pressed="#dde2e5",
    border="#e3e6e9",
    border_strong="#c5ccd2",
    text="#1a2026",
    muted="#5a6570",
    accent="#0b746e",
    accent_hover="#095f5a",
    on_accent="#ffffff",
    accent_soft="#dff1ef",
    focus="#0b8a83",
    selection="#bfe3e0",
    danger="#b3261e",
    danger_soft="#fdeeec",
    warning="#7d4e00",
    warning_soft="#fdf3dd",
    code="#f5f7f8",
    code_text="#1f2830",
    code_muted="#5f6b76",
    code_keyword="#8a2a8f",
    code_string="#1b6b36",
    code_number="#9a4a00",
    code_name="#1256a8",
    code_type="#0a6a75",
)

DARK = Palette(
    name="dark",
    is_dark=True,
    canvas="#15191d",
    sidebar="#101316",
    panel="#12161a",
    raised="#1c2126",
    bubble="#232a30",
    hover="#20262b",
    pressed="#2b333a",
    border="#262d33",
    border_strong="#3b454e",
    text="#e6eaed",
    muted="#98a4af",
    accent="#4cc9be",
    accent_hover="#6bd8ce",
    on_accent="#06201e",
    accent_soft="#14322f",
    focus="#4cc9be",
    selection="#1f5752",
    danger="#ff9a90",
    danger_soft="#341c1b",
    warning="#f0c274",
    warning_soft="#302612",
    code="#0f1316",
    code_text="#dde3e8",
    code_muted="#8b97a3",
    code_keyword="#d79be0",
    code_string="#8fd19e",
    code_number="#f0b27a",
    code_name="#86b9f5",
    code_type="#6fd3d6",
)


class Space:
    """Distances in pixels, multiples of four."""

    XS = 4
    S = 8
    M = 12
    L = 16
    XL = 24
    XXL = 40


class Type:
    """Text sizes in pixels."""

    CAPTION = 12
    LABEL = 13
    BODY = 14
    LARGE = 15
    TITLE = 17
    HERO = 26


class Corner:
    """Corner radii in pixels."""

    S = 6
    M = 10
    L = 16


TAB_WIDTH = 32  # four letters of code
COLUMN = 760  # widest line of the chat, for reading
SIDEBAR = 268
PANEL = 300
LINE = 1  # between parts of the window, drawn by the style sheet
TOP_BAR = 48
NARROW = 880  # below this width only one side panel is open at a time


def sized(pixels: int, percent: int) -> int:
    """Return pixels of the design where text is shown in ``percent``; at least one."""
    return max(1, round(pixels * percent / 100))
