"""The files of a message that was sent, or images that a tool gave: a line each, which unfolds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from PySide6.QtCore import QBuffer, QByteArray, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QImageReader, QPixmap
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from ui.chat.attachments.chip import facts, how_chosen, short
from ui.client.attachments import Attachment
from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.elided_label import in_tip, on_button

HEIGHT = 240  # pixels of an unfolded text, which then scrolls
PICTURE = 420  # pixels of the longer side of an unfolded image
THUMBNAIL = 48  # the same of one that is not
NAME = 48  # letters of a name
SHOWN = 100_000  # letters of an unfolded text: more take a while to lay out


class SentFiles(Dressed, QWidget):
    """Folded at first; hidden for a message without files."""

    unfolded = Signal(bool)  # or folded

    def __init__(self, attachments: Sequence[Attachment], is_from_tool: bool = False) -> None:
        super().__init__()
        self._attachments = tuple(attachments)
        self._is_from_tool = is_from_tool
        self._side = Qt.AlignmentFlag.AlignLeft if is_from_tool else Qt.AlignmentFlag.AlignRight
        self.buttons: list[QToolButton] = []
        self._unfolded: dict[int, QWidget] = {}
        self._column = fill(QVBoxLayout(self), spacing=Space.XS, margins=0)
        for number, one in enumerate(self._attachments):
            self._column.addWidget(self._button(number, one), 0, self._side)
        if not self._attachments:
            self.hide()
        self.dress()

    def dress(self) -> None:
        """Draw the icons."""
        side = scaled(THUMBNAIL)
        for button, one in zip(self.buttons, self._attachments, strict=True):
            set_icon(button, "image" if one.image else "file", colours().muted, size=16)
            # Of messages, all would be decoded when a chat is opened.
            image = picture_of(one, round(side * self.devicePixelRatioF())) if self._is_from_tool else QImage()
            if not image.isNull():
                button.setIcon(QIcon(QPixmap.fromImage(image)))
                button.setIconSize(QSize(side, side))

    def _button(self, number: int, one: Attachment) -> QToolButton:
        button = QToolButton()
        button.setObjectName("chip")
        button.setProperty("kind", "chip")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setCheckable(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setText(on_button(f"{short(one.name, NAME)}   {facts(one)}"))
        button.setAccessibleName(tr("File {name}, {facts}", name=one.name, facts=facts(one)))
        if self._is_from_tool:
            tip = tr("The model is not given it. Click to see it larger.")
        else:
            tip = tr(
                "{name}\n{how_chosen} Click to see what the model was given.",
                name=one.name,
                how_chosen=how_chosen(one),
            )
        button.setToolTip(in_tip(tip))
        button.toggled.connect(lambda is_open: self._unfold(number, is_open))
        button.toggled.connect(self.unfolded)
        self.buttons.append(button)
        return button

    def _unfold(self, number: int, is_open: bool) -> None:
        if number not in self._unfolded:
            one = self._attachments[number]
            view = self._unfolded[number] = _picture(one, self._side) if one.image else _text(one)
            self._column.insertWidget(self._column.indexOf(self.buttons[number]) + 1, view)
        self._unfolded[number].setVisible(is_open)


def _text(one: Attachment) -> QWidget:
    view = QPlainTextEdit()
    view.setObjectName("attachmentText")
    view.setReadOnly(True)
    view.setTabChangesFocus(True)
    view.setAccessibleName(tr("What was sent of {name}", name=one.name))
    text = one.text()
    view.setPlainText(
        text
        if len(text) <= SHOWN
        else tr("{value}\n… ({n_text:,} characters in all)", value=text[:SHOWN], n_text=len(text))
    )
    view.setFixedHeight(scaled(HEIGHT))
    return view


def _picture(one: Attachment, side: Qt.AlignmentFlag) -> QWidget:
    label = QLabel()
    label.setAccessibleName(tr("The image {name}", name=one.name))
    label.setAlignment(side)
    image = picture_of(one, PICTURE)
    if image.isNull():
        label.setText(tr("This image cannot be shown."))
    else:
        label.setPixmap(QPixmap.fromImage(image))
    return label


def picture_of(one: Attachment, widest: int) -> QImage:
    """Return an attached image, its longer side at most ``widest`` pixels; a null image where it is broken."""
    try:
        data = QByteArray(base64.b64decode(one.image.partition(",")[2]))
    except binascii.Error:
        return QImage()
    buffer = QBuffer(data)
    reader = QImageReader(buffer)
    size = reader.size()
    if max(size.width(), size.height()) > widest:
        reader.setScaledSize(size.scaled(widest, widest, Qt.AspectRatioMode.KeepAspectRatio))
    return reader.read()
