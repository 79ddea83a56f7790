"""Design tokens: the light and the dark palette, and one scale each for space, type and corners."""

from __future__ import annotations

from dataclasses import dataclass, replace


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
    disabled: str  # flat buttons that cannot be used
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
    disabled="#c5ccd2",
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
    hover="#2a323a",
    pressed="#353f49",
    border="#262d33",
    border_strong="#3b454e",
    disabled="#3b454e",
    text="#e6eaed",
    muted="#9eaab5",
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

CONTRAST_LIGHT = replace(
    LIGHT,
    name="high contrast, light",
    sidebar="#ffffff",
    panel="#ffffff",
    bubble="#eeeeee",
    hover="#e4e4e4",
    pressed="#d4d4d4",
    border="#6a6a6a",
    border_strong="#000000",
    disabled="#8a8a8a",
    text="#000000",
    muted="#333333",
    accent="#004a46",
    accent_hover="#00302d",
    focus="#004a46",
    danger="#8a0f08",
    warning="#5a3600",
    code="#ffffff",
    code_text="#000000",
    code_muted="#3c444b",
    code_keyword="#6a0f70",
    code_string="#0a4a20",
    code_number="#6b3200",
    code_name="#08376f",
    code_type="#044a52",
)
CONTRAST_DARK = replace(
    DARK,
    name="high contrast, dark",
    canvas="#000000",
    sidebar="#000000",
    panel="#000000",
    raised="#000000",
    bubble="#1c1c1c",
    hover="#262626",
    pressed="#333333",
    border="#9a9a9a",
    border_strong="#ffffff",
    disabled="#707070",
    text="#ffffff",
    muted="#dcdcdc",
    accent="#6ff5e9",
    accent_hover="#a5fbf4",
    on_accent="#000000",
    focus="#6ff5e9",
    danger="#ffb4ab",
    warning="#ffd98a",
    code="#000000",
    code_text="#ffffff",
    code_muted="#c8d0d8",
    code_keyword="#f0bdf7",
    code_string="#b0f0be",
    code_number="#ffd0a0",
    code_name="#b3d6ff",
    code_type="#9af2f4",
)

# By name, the colour on light ground and that on dark ground; the first is what the palettes have.
ACCENTS = {
    "Teal": (LIGHT.accent, DARK.accent),
    "Blue": ("#1a5fb4", "#7db3f5"),
    "Violet": ("#6b3fb0", "#bfa0f5"),
    "Rose": ("#a8245f", "#f59abf"),
    "Amber": ("#8a4b00", "#f0b45c"),
    "Graphite": ("#3d4852", "#c0cad3"),
}
USUAL_ACCENT = next(iter(ACCENTS))


def with_accent(palette: Palette, name: str) -> Palette:
    """Return ``palette`` with another accent and what goes with it; as it is for the usual one or an unknown name."""
    if name == USUAL_ACCENT or name not in ACCENTS:
        return palette
    accent = ACCENTS[name][palette.is_dark]
    return replace(
        palette,
        accent=accent,
        accent_hover=mixed(accent, palette.text, 0.2),
        accent_soft=mixed(palette.canvas, accent, 0.14),
        on_accent=mixed(accent, "#000000", 0.86) if palette.is_dark else "#ffffff",
        focus=accent,
        selection=mixed(palette.canvas, accent, 0.34 if palette.is_dark else 0.26),
    )


def mixed(first: str, second: str, share: float) -> str:
    """Return a colour on the way from ``first`` to ``second``; ``share`` of it is ``second``."""
    pairs = ((int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(one + (other - one) * share):02x}" for one, other in pairs)


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


ICON = 20  # pixels of the usual icon on a button
AROUND_ICON = 12  # of a button beside its icon, both sides together
TAB_WIDTH = 32  # four letters of code
COLUMN = 760  # widest line of the chat and of lists, for reading
SIDEBAR = 268
PANEL = 300
LINE = 1  # between parts of the window, drawn by the style sheet
TOP_BAR = 48
NARROW = 880  # below this width only one side panel is open at a time


def sized(pixels: int, percent: int) -> int:
    """Return pixels of the design where text is shown in ``percent``; at least one."""
    return max(1, round(pixels * percent / 100))
