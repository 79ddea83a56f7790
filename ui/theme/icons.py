"""The icons: simple line drawings on a grid of 24, in any colour; they grow with the text."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton

from ui.theme.text_size import scaled
from ui.theme.tokens import ICON

_DRAWINGS = {
    "sidebar": "M4 5h16v14H4z M9.5 5v14",
    "panel": "M4 7h9 M17 7h3 M15 5v4 M4 12h3 M11 12h9 M9 10v4 M4 17h10 M18 17h2 M16 15v4",
    "beside": "M4 5h16v14H4z M12 5v14",
    "new": "M12 5v14 M5 12h14",
    "search": "M10.5 4.5a6 6 0 1 0 0 12a6 6 0 1 0 0-12z M15 15l5 5",
    "send": "M12 19V5.5 M6 11l6-6 6 6",
    "stop": "M7.5 7.5h9v9h-9z",
    "copy": "M9 9h10v11H9z M15 9V5H5v11h4",
    "redo": "M19 12a7 7 0 1 1-2.2-5.1 M19.5 3.5V8H15",
    "edit": "M5 19l.8-3.6L16 5.2l2.8 2.8L8.6 18.2z M14 7.2l2.8 2.8",
    "close": "M6.5 6.5l11 11 M17.5 6.5l-11 11",
    "down": "M7 10l5 5 5-5",
    "left": "M14 7l-5 5 5 5",
    "right": "M10 7l5 5-5 5",
    "bottom": "M12 5v13.5 M6 13l6 6 6-6",
    "check": "M5.5 12.5l4 4 9-9.5",
    "alert": "M12 4.5L21 19.5H3z M12 10v4.5 M12 17v.2",
    "dot": "M12 8.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7z",
    "more": "M6 12h.1 M12 12h.1 M18 12h.1",
    "chat": "M4.5 5.5h15v10.5h-8L7 19.5V16H4.5z",
    "library": "M4.5 5h4v14h-4z M8.5 5h4v14h-4z M14 6.2l3.8-1 3.4 13.2-3.8 1z",
    "jobs": "M4.5 6.5l1.5 1.5 3-3 M4.5 12.5l1.5 1.5 3-3 M4.5 18.5l1.5 1.5 3-3 M12.5 7h7 M12.5 13h7 M12.5 19h7",
    "speed": "M4.5 17.5a8.5 8.5 0 1 1 15 0 M12 14.5l4-5",
    "server": "M4.5 5h15v6h-15z M4.5 13h15v6h-15z M8 8h.1 M8 16h.1",
    "download": "M12 4v10.5 M7 10l5 5 5-5 M5 19h14",
    "pause": "M9 6.5v11 M15 6.5v11",
    "play": "M8.5 6l9 6-9 6z",
    "up": "M7 14l5-5 5 5",
    "spark": "M13 3L6 13.5h5L10.5 21 18 10h-5.5z",
    "attach": "M19 11l-7 7a4 4 0 0 1-5.7-5.7l7.4-7.4a2.7 2.7 0 0 1 3.8 3.8l-7 7a1.3 1.3 0 0 1-1.9-1.9l6.2-6.2",
    "file": "M6.5 3.5h7l4 4v13h-11z M13.5 3.5v4h4",
    "image": "M4 5h16v14H4z M4 16l4.5-4.5 3.5 3.5 2.5-2.5L20 18 M15.5 8.5h.1",
    "settings": "M12 6a6 6 0 1 0 0 12a6 6 0 1 0 0-12z M12 10a2 2 0 1 0 0 4a2 2 0 1 0 0-4z M12 3.2V6 M12 18v2.8 "
    "M4.4 7.6l2.4 1.4 M17.2 15l2.4 1.4 M4.4 16.4l2.4-1.4 M17.2 9l2.4-1.4",
    "prompts": "M5 5.5h14 M5 10h9 M5 14.5h6 M16.5 12.5v7 M13 16h7",
    "tools": "M14.5 5a4 4 0 0 0-4.6 5.3L4.5 15.7l3.8 3.8 5.4-5.4A4 4 0 0 0 19 9.5l-2.6 2.6-3-3L16 6.5z",
    "pin": "M9 4h6l-.8 6 3 3.2H6.8l3-3.2z M12 13.5V20",
    "folder": "M3.5 6.5h6l2 2.5h9v10h-17z",
    "archive": "M4 5h16v4H4z M5.5 9v10.5h13V9 M10 12.5h4",
    "eye": "M3 12c2.4-4.4 5.4-6.5 9-6.5s6.6 2.1 9 6.5c-2.4 4.4-5.4 6.5-9 6.5s-6.6-2.1-9-6.5z "
    "M12 9.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6z",
    "eye-off": "M3 12c2.4-4.4 5.4-6.5 9-6.5s6.6 2.1 9 6.5c-2.4 4.4-5.4 6.5-9 6.5s-6.6-2.1-9-6.5z M5 19.5L19 4.5",
    "stream": "M3.5 8.5c3-3 6 3 9 0s5-2 8 0 M3.5 13.5c3-3 6 3 9 0s5-2 8 0",
}
_FILLED = {"dot": "M12 8.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7z", "stop": "M7.5 7.5h9v9h-9z"}


# What points along the line, and pages and lists, whose lines begin at a side.
_MIRRORED = ("left", "right", "sidebar", "panel", "jobs", "prompts", "server", "chat")


def svg(name: str, colour: str) -> bytes:
    """Return an icon as an SVG file."""
    filled = f'<path d="{_FILLED[name]}" fill="{colour}"/>' if name in _FILLED else ""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke-width="1.7" '
        f'stroke="{colour}" stroke-linecap="round" stroke-linejoin="round">{filled}<path d="{_DRAWINGS[name]}"/></svg>'
    ).encode()


def pixmap(name: str, colour: str, size: int, ratio: float) -> QPixmap:
    """Draw an icon, ``size`` of the design's pixels wide; mirrored where one reads from right to left."""
    return _pixmap(name, colour, scaled(size), ratio, name in _MIRRORED and QGuiApplication.isRightToLeft())


@lru_cache(maxsize=256)
def _pixmap(name: str, colour: str, size: int, ratio: float, is_mirrored: bool) -> QPixmap:
    image = QPixmap(round(size * ratio), round(size * ratio))
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    if is_mirrored:
        painter.translate(image.width(), 0)
        painter.scale(-1, 1)
    QSvgRenderer(QByteArray(svg(name, colour))).render(painter, QRectF(image.rect()))
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image


def icon(name: str, colour: str, disabled: str | None = None, size: int = ICON) -> QIcon:
    """Return an icon in ``colour``, and in ``disabled`` where it cannot be used."""
    ratio = QGuiApplication.primaryScreen().devicePixelRatio() if QGuiApplication.primaryScreen() else 1.0
    return _icon(name, colour, disabled, scaled(size), ratio, name in _MIRRORED and QGuiApplication.isRightToLeft())


@lru_cache(maxsize=256)
def _icon(name: str, colour: str, disabled: str | None, size: int, ratio: float, is_mirrored: bool) -> QIcon:
    made = QIcon(_pixmap(name, colour, size, ratio, is_mirrored))
    if disabled:
        made.addPixmap(_pixmap(name, disabled, size, ratio, is_mirrored), QIcon.Mode.Disabled)
    return made


def set_icon(button: QAbstractButton, name: str, colour: str, disabled: str | None = None, size: int = ICON) -> None:
    """Put an icon on a button, as large as it is drawn."""
    button.setIconSize(QSize(scaled(size), scaled(size)))
    button.setIcon(icon(name, colour, disabled, size))
