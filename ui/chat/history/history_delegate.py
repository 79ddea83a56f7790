"""How a line of the history looks."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from models.formatting.figures import count
from ui.chat.history.history_model import CHAT, HEADING, RUNNING, SNIPPET, Heading
from ui.language import tr
from ui.theme.colours import colours
from ui.theme.icons import pixmap
from ui.theme.text_size import scaled
from ui.theme.tokens import Space, Type
from ui.widgets.elided_label import draw_line
from ui.widgets.row_list import paint_ground, row_font

ROW = 34
ROW_WITH_SNIPPET = 52
FOLDER_ICON, PIN_ICON = 16, 14
Index = QModelIndex | QPersistentModelIndex


class HistoryDelegate(QStyledItemDelegate):
    """Paints headings, titles and where a search met; edits titles in place."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._has_snippets = False

    def set_has_snippets(self, has_snippets: bool) -> None:
        """Make room for a second line."""
        self._has_snippets = has_snippets

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the same height for all lines: a list of ten thousand needs no measuring."""
        return QSize(100, scaled(ROW_WITH_SNIPPET if self._has_snippets else ROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint one line."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = option.rect.adjusted(Space.S, 1, -Space.S, -1)
        heading = index.data(HEADING)
        if heading and heading.is_folder:
            self._paint_folder(painter, option, rect, heading)
        elif heading:
            self._paint_heading(painter, option.direction, rect, str(index.data()))
        else:
            self._paint_chat(painter, option, rect, index)
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        """Return a field for the title."""
        field = QLineEdit(parent)
        field.setAccessibleName(tr("Name of the folder") if index.data(HEADING) else tr("Title of the chat"))
        field.setMaxLength(200)
        return field

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """Let the field cover the line."""
        editor.setGeometry(option.rect.adjusted(Space.S, 1, -Space.S, -1))

    def _paint_heading(self, painter: QPainter, way: Qt.LayoutDirection, rect: QRect, text: str) -> None:
        painter.setFont(row_font(painter, Type.CAPTION, QFont.Weight.DemiBold))
        painter.setPen(QColor(colours().muted))
        above = rect.height() - painter.fontMetrics().height() - Space.XS
        draw_line(painter, QStyle.visualRect(way, rect, rect.adjusted(Space.S + 2, above, 0, -Space.XS)), text)

    def _paint_folder(self, painter: QPainter, option: QStyleOptionViewItem, rect: QRect, folder: Heading) -> None:
        paint_ground(painter, rect, option.state)
        side, ratio, way = scaled(FOLDER_ICON), painter.device().devicePixelRatioF(), option.direction
        colour = colours().muted
        place = QRect(rect.left() + Space.XS, rect.center().y() - side // 2, side, side)
        arrow = pixmap("down" if folder.is_open else "right", colour, FOLDER_ICON, ratio)
        painter.drawPixmap(QStyle.visualRect(way, rect, place), arrow)
        place.translate(side + 2, 0)
        painter.drawPixmap(QStyle.visualRect(way, rect, place), pixmap("folder", colour, FOLDER_ICON, ratio))
        inner = rect.adjusted(2 * side + Space.M, 0, -Space.S, 0)
        number = count(folder.n_chats)
        painter.setFont(row_font(painter, Type.CAPTION, QFont.Weight.Normal))
        painter.setPen(QColor(colour))
        draw_line(painter, QStyle.visualRect(way, rect, inner), number, Qt.AlignmentFlag.AlignRight)
        inner.setRight(inner.right() - painter.fontMetrics().horizontalAdvance(number) - Space.S)
        self._paint_line(painter, QStyle.visualRect(way, rect, inner), folder.text, weight=QFont.Weight.Medium)

    def _paint_chat(self, painter: QPainter, option: QStyleOptionViewItem, rect: QRect, index: Index) -> None:
        state, way = option.state, option.direction
        is_chosen = bool(state & QStyle.StateFlag.State_Selected)
        paint_ground(painter, rect, state)
        inner = rect.adjusted(Space.S + 2, 0, -Space.S, 0)
        if index.data(RUNNING):
            inner.setRight(inner.right() - Space.L)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours().accent))
            dot = QRect(rect.right() - Space.L, rect.center().y() - 3, 7, 7)
            painter.drawEllipse(QStyle.visualRect(way, rect, dot))
        chat = index.data(CHAT)
        if chat is not None and chat.is_pinned:
            side = scaled(PIN_ICON)
            place = QRect(inner.right() - side, rect.center().y() - side // 2, side, side)
            ratio = painter.device().devicePixelRatioF()
            pin = pixmap("pin", colours().muted, PIN_ICON, ratio)
            painter.drawPixmap(QStyle.visualRect(way, rect, place), pin)
            inner.setRight(place.left() - Space.XS)
        elif chat is not None and chat.folder and not self._has_snippets:
            inner.setLeft(inner.left() + Space.M)
        snippet = str(index.data(SNIPPET) or "")
        title_rect = QRect(inner)
        if self._has_snippets and snippet:
            title_rect.setBottom(inner.center().y())
            below = inner.adjusted(0, inner.height() // 2, 0, -Space.XS)
            self._paint_line(painter, QStyle.visualRect(way, rect, below), snippet, muted=True)
        place = QStyle.visualRect(way, rect, title_rect)
        weight = QFont.Weight.Medium if is_chosen else QFont.Weight.Normal
        self._paint_line(painter, place, str(index.data()), weight=weight)

    def _paint_line(
        self, painter: QPainter, rect: QRect, text: str, muted: bool = False, weight: QFont.Weight = QFont.Weight.Normal
    ) -> None:
        painter.setFont(row_font(painter, Type.CAPTION if muted else Type.LABEL, weight))
        painter.setPen(QColor(colours().muted if muted else colours().text))
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        draw_line(painter, rect, shown)
