"""The Qt style sheet, made from the design tokens. No Qt here."""

from __future__ import annotations

from dataclasses import asdict
from string import Template

from ui.theme.tokens import AROUND_ICON, ICON, Corner, Palette, Space, Type, sized

BOX = 15  # pixels of a box to tick
_SHEET = Template("""
* { outline: none; }
QToolTip { background: $raised; color: $text; border: 1px solid $border; padding: 5px 8px; font-size: ${caption}px; }

#rail { background: $sidebar; border-$end: 1px solid $border; }
#detailsSide { background: $panel; }
#judgeCard { background: $canvas; border-top: 1px solid $border; }
#page, #scroll, #scrollBody { background: $canvas; border: 0; }
#scroll[kind="reading"] { border: 2px solid transparent; }
#scroll[kind="reading"]:focus { border-color: $focus; }
#detailsSide #scroll, #detailsSide #scrollBody, #panel #scroll, #panel #scrollBody { background: $panel; }
#composerCard #scroll, #composerCard #scrollBody { background: transparent; }
#actionRow { border-bottom: 1px solid $border; border-radius: 0; }
#snippet { background: $code; color: $code_text; font-family: "$mono"; font-size: ${caption}px;
    border: 1px solid $border; border-radius: ${corner_s}px; padding: 6px 8px;
    selection-background-color: $selection; selection-color: $text; }
#snippet:focus { border-color: $focus; }
#downloadCard { background: $panel; border: 1px solid $border; border-radius: ${corner_m}px; }
#offeredModel { background: $canvas; border: 1px solid $border; border-radius: ${corner_s}px; }
#sidebar { background: $sidebar; }
#panel { background: $panel; }
#speedBar { background: $panel; border-top: 1px solid $border; }
#topBar { background: $canvas; border-bottom: 1px solid $border; }
#panelHead { background: $panel; border-bottom: 1px solid $border; }
#canvas { background: $canvas; border: 0; }

QLabel { background: transparent; }
QLabel[tone="muted"] { color: $muted; }
QLabel[tone="strong"] { color: $text; font-weight: 600; }
QLabel[tone="strong"]:disabled { color: $muted; }
QLabel[tone="caption"] { color: $muted; font-size: ${caption}px; }
QLabel[tone="section"] { color: $muted; font-size: ${caption}px; font-weight: 600; }
QLabel[tone="title"] { font-size: ${title}px; font-weight: 600; }
QLabel[tone="hero"] { font-size: ${hero}px; font-weight: 600; }
QLabel[tone="badge"] { color: $warning; background: $warning_soft; border-radius: 8px; padding: 1px 7px;
    font-size: ${caption}px; }
QLabel[tone="accent"] { color: $accent; font-weight: 600; }
#racePicture { background: $canvas; border: 0; }
QLabel[tone="problem"] { color: $danger; }
QLabel[tone="field problem"] { color: $danger; font-size: ${caption}px; }
QLabel[tone="warning"] { color: $warning; }
QPushButton::menu-indicator { image: none; width: 0; }

QToolButton { border: 2px solid transparent; border-radius: ${corner_s}px; background: transparent; padding: 2px; }
QToolButton:hover { background: $hover; }
QToolButton:pressed, QToolButton:checked, QToolButton[shown="true"] { background: $pressed; }
QToolButton:focus { border-color: $focus; }
QToolButton::menu-indicator { image: none; width: 0; }
QToolButton[kind="picker"] { font-size: ${body}px; font-weight: 600; padding: 4px 8px; color: $text; }
QToolButton[kind="speed"] { font-size: ${caption}px; color: $muted; padding: 2px 6px; }
QToolButton[kind="speed"]:hover { color: $text; }
QToolButton[kind="send"] { background: $accent; border-radius: ${round}px; }
QToolButton[kind="send"]:hover { background: $accent_hover; }
QToolButton[kind="send"]:disabled { background: $bubble; }
QToolButton[kind="send"]:focus { border-color: $text; }
QToolButton[kind="round"] { background: $raised; border: 1px solid $border_strong; border-radius: ${round}px; }
QToolButton[kind="round"]:hover { background: $hover; }
QToolButton[kind="round"]:focus { border: 2px solid $focus; }

QPushButton { background: $raised; color: $text; border: 1px solid $border_strong; border-radius: ${corner_s}px;
    padding: 6px 14px; }
QPushButton:hover { background: $hover; }
QPushButton:pressed { background: $pressed; }
QPushButton:focus { border: 2px solid $focus; padding: 5px 13px; }
QPushButton:disabled { color: $muted; border-color: $border; }
QPushButton[kind="primary"] { background: $accent; color: $on_accent; border-color: $accent; font-weight: 600; }
QPushButton[kind="primary"]:hover { background: $accent_hover; }
QPushButton[kind="primary"]:disabled { background: $pressed; color: $muted; border-color: $border; }
QPushButton[kind="primary"]:focus { border: 2px solid $text; }
QPushButton[kind="flat"] { background: transparent; color: $muted; border: 2px solid transparent; padding: 2px 8px;
    font-size: ${caption}px; }
QPushButton[kind="flat"]:hover { background: $hover; color: $text; }
QPushButton[kind="flat"]:disabled { color: $disabled; }
QPushButton[kind="flat"]:focus { border-color: $focus; }
QPushButton[kind="new"] { text-align: left; padding: 7px 10px; font-weight: 600; }
QPushButton[kind="new"]:focus { padding: 6px 9px; }
QPushButton[kind="choice"] { text-align: left; border: 2px solid transparent; background: transparent; padding: 0; }
QPushButton[kind="choice"]:hover, QPushButton[kind="choice"]:focus { background: $hover; }
QPushButton[kind="choice"]:focus { border-color: $focus; padding: 0; }
QPushButton[kind="tab"] { background: transparent; border: 2px solid transparent; color: $muted; padding: 5px 10px; }
QPushButton[kind="tab"]:hover { background: $hover; color: $text; }
QPushButton[kind="tab"]:checked { color: $text; background: $pressed; font-weight: 600; }
QPushButton[kind="tab"]:focus { border-color: $focus; padding: 5px 10px; }
QPushButton[kind="example"] { text-align: left; padding: 12px 14px;
    border-color: $border; border-radius: ${corner_m}px; }
QPushButton[kind="example"]:hover { border-color: $border_strong; background: $panel; }
QPushButton[kind="example"]:focus { border: 2px solid $focus; padding: 11px 13px; }

QLineEdit, QPlainTextEdit { placeholder-text-color: $muted; }
QLineEdit, QPlainTextEdit[kind="field"], QSpinBox, QDoubleSpinBox { background: $raised; color: $text;
    border: 1px solid $border_strong; border-radius: ${corner_s}px; padding: 5px 8px;
    selection-background-color: $selection; selection-color: $text; }
QLineEdit:focus, QPlainTextEdit[kind="field"]:focus, QSpinBox:focus, QDoubleSpinBox:focus {
    border: 2px solid $focus; padding: 4px 7px; }
QAbstractSpinBox QLineEdit, QAbstractSpinBox QLineEdit:focus { background: transparent; border: 0; padding: 0; }
QSpinBox, QDoubleSpinBox { padding: 3px 6px; }
QSpinBox:focus, QDoubleSpinBox:focus { padding: 2px 5px; }

QLineEdit[wrong="true"], QPlainTextEdit[wrong="true"], QComboBox[wrong="true"] { border-color: $danger; }
QComboBox { background: $raised; color: $text; border: 1px solid $border_strong; border-radius: ${corner_s}px;
    padding: 5px 8px; padding-$end: 26px; combobox-popup: 0; }
QComboBox:focus { border: 2px solid $focus; padding: 4px 7px; padding-$end: 25px; }
QComboBox:disabled, QLineEdit:disabled, QPlainTextEdit[kind="field"]:disabled, QSpinBox:disabled,
QDoubleSpinBox:disabled { color: $muted; background: $panel; border-color: $border; }
QComboBox::drop-down { border: 0; width: 26px; }
QComboBox::down-arrow { image: none; }
QComboBox QAbstractItemView { background: $raised; color: $text; border: 1px solid $border_strong; outline: 0; }
QComboBox QAbstractItemView::item { padding: 5px 8px; }
QComboBox QAbstractItemView::item:selected { background: $hover; color: $text; }
QCheckBox { border: 0; padding: 5px 0; spacing: 8px; }
QCheckBox:disabled { color: $muted; }
QCheckBox::indicator { width: ${box}px; height: ${box}px; border: 1px solid $muted; border-radius: 4px;
    background: $raised; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; }
QCheckBox::indicator:disabled { background: $panel; border-color: $disabled; }
QCheckBox::indicator:checked:disabled { background: $muted; border-color: $muted; }

#composerCard { background: $raised; border: 1px solid $border_strong; border-radius: ${corner_l}px; }
#composerCard[focused="true"] { border-color: $focus; }
#composerCard QPlainTextEdit { background: transparent; border: 0; color: $text; font-size: ${large}px;
    selection-background-color: $selection; selection-color: $text; }

#chip { background: $panel; border: 1px solid $border; border-radius: ${corner_s}px; }
QToolButton[kind="chip"] { color: $text; font-size: ${caption}px; padding: 1px 4px; }
QToolButton[kind="chip"]:hover { background: transparent; }
#attachmentText { background: $raised; border: 1px solid $border; border-radius: ${corner_s}px; padding: 4px 6px;
    font-family: "$mono"; }
#tickList { border: 1px solid $border; border-radius: ${corner_s}px; padding: 4px; }
#tickList::item { padding: 5px 4px; color: $text; border-radius: ${corner_s}px; }
#tickList::item:hover, #tickList::item:selected { background: $hover; color: $text; }
#tickList::indicator { width: ${box}px; height: ${box}px; border: 1px solid $muted; border-radius: 4px; }
#tickList::indicator:checked { background: $accent; border-color: $accent; }

QTextBrowser { background: transparent; border: 0; color: $text; font-size: ${large}px;
    selection-background-color: $selection; selection-color: $text; }
#speedCard { background: $raised; border: 1px solid $border_strong; border-radius: ${corner_s}px; }
#bubble { background: $bubble; border-radius: ${corner_l}px; }
#editCard { background: $raised; border: 2px solid $border_strong; border-radius: ${corner_m}px; }
#editCard[focused="true"] { border-color: $focus; }
#editCard QPlainTextEdit { background: transparent; border: 0; font-size: ${large}px; }
#thoughtsHead { border: 2px solid transparent; border-radius: ${corner_s}px; color: $muted; padding: 2px 0;
    padding-$end: 6px; font-size: ${body}px; }
#thoughtsHead:hover, #thoughtsHead:checked { background: transparent; color: $text; }
#thoughtsHead:focus { border-color: $focus; }
#contextBar { font-size: ${caption}px; }
#receiptLine { border: 2px solid transparent; border-radius: ${corner_s}px; font-size: ${caption}px; }
#receiptLine:focus { border-color: $focus; }
#receiptCard { background: $panel; border: 1px solid $border; border-radius: ${corner_m}px; }
#thoughtsBody { border-$start: 2px solid $border; border-radius: 0; }
#banner[tone="warning"] { background: $warning_soft; border-bottom: 1px solid $border; }
#banner[tone="danger"] { background: $danger_soft; border-bottom: 1px solid $border; }
#banner[tone="plain"] { background: $accent_soft; border-bottom: 1px solid $border; }
#banner[floats="true"] { border: 0; border-radius: ${corner_s}px; }
#palette { background: $raised; border: 1px solid $border_strong; border-radius: ${corner_m}px; }
#toast { background: $text; border-radius: ${corner_m}px; }
#toast QLabel { color: $canvas; }
#toast QPushButton { background: transparent; border: 2px solid transparent; color: $canvas; font-weight: 600;
    text-decoration: underline; padding: 2px 8px; }
#toast QPushButton:focus { border-color: $canvas; }

QListView { background: transparent; border: 0; }
QMenu { background: $raised; color: $text; border: 1px solid $border_strong; padding: 5px; }
QMenu::item { padding: 7px 12px; padding-$end: 26px; border-radius: ${corner_s}px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $border; margin: 5px 8px; }
QMenu::indicator { width: ${box}px; height: ${box}px; $start: 8px; }

QSlider:horizontal { min-height: 20px; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $pressed; }
QSlider::sub-page:horizontal { background: $accent; border-radius: 2px; }
QSlider::handle:horizontal { width: 14px; height: 14px; margin: -6px 0; border-radius: 8px; background: $raised;
    border: 1px solid $muted; }
QSlider::handle:horizontal:hover { border-color: $accent; }
QSlider::handle:horizontal:focus { border: 3px solid $focus; width: 12px; height: 12px;
    margin: -7px 0; border-radius: 9px; }
QProgressBar { background: transparent; border: 0; max-height: 3px; min-height: 3px; }
QProgressBar::chunk { background: $accent; }
#progressLine { background: $pressed; border-radius: 2px; max-height: 4px; min-height: 4px; }
#progressLine::chunk { border-radius: 2px; }
#progressLine[tone="calm"]::chunk { background: $muted; }
QSplitter::handle { background: $border; }

QScrollBar:vertical { background: transparent; width: 12px; margin: 2px; }
QScrollBar::handle:vertical { background: $border_strong; border-radius: 4px; min-height: 36px; }
QScrollBar::handle:vertical:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page { background: transparent;
    height: 0; width: 0; }
QScrollBar:horizontal { background: transparent; height: 12px; margin: 2px; }
QScrollBar::handle:horizontal { background: $border_strong; border-radius: 4px; min-width: 36px; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QMessageBox, QDialog { background: $canvas; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
QMessageBox #qt_msgbox_label, QMessageBox #qt_msgbox_informativelabel { min-width: 26em; }
QMessageBox #qt_msgbox_label { font-weight: 600; }
#dialogLine, #paneLine { background: $border; }
#framedList { border: 1px solid $border; border-radius: ${corner_s}px; padding: 4px 0; }
#calmNote { background: $accent_soft; border: 1px solid $border; border-radius: ${corner_s}px; }
#warningNote { background: $warning_soft; border: 1px solid $border; border-radius: ${corner_s}px; }
#problemNote { background: $danger_soft; border: 1px solid $border; border-radius: ${corner_s}px; }
""")


def stylesheet(palette: Palette, percent: int = 100, mono: str = "monospace", is_mirrored: bool = False) -> str:
    """Return the style sheet of the application in ``palette``, its text in ``percent`` of the design's sizes.

    ``mono`` is the family for code. ``is_mirrored``: the window is read from right to left.
    """
    texts = {"caption": Type.CAPTION, "body": Type.BODY, "large": Type.LARGE, "title": Type.TITLE, "hero": Type.HERO}
    sizes: dict[str, object] = {
        "corner_s": Corner.S,
        "corner_m": Corner.M,
        "corner_l": Corner.L,
        "space_s": Space.S,
        "mono": mono,
        "start": "right" if is_mirrored else "left",
        "end": "left" if is_mirrored else "right",
    }
    sizes |= {"box": sized(BOX, percent), "round": (sized(ICON, percent) + AROUND_ICON) // 2}
    scaled = {name: sized(pixels, percent) for name, pixels in texts.items()}
    return _SHEET.substitute(asdict(palette), **sizes, **scaled)
