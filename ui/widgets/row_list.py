"""A list of two-line rows: the one look of models, repositories and quantisations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from models.formatting.safe_text import one_line
from ui.theme.colours import colours
from ui.theme.text_size import scaled
from ui.theme.tokens import COLUMN, Corner, Space, Type
from ui.widgets.elided_label import draw_line, fitting, in_tip

ROW_HEIGHT = 54
Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class ListRow:
    """One row. ``line`` is below the title, ``right`` at the end; ``tone`` colours the badge or the line.

    Its words are names from outside too: they are kept on one line and in their direction.
    """

    key: str
    title: str
    line: str
    right: str = ""
    badge: str = ""
    tone: str = "warning"
    has_problem: bool = False

    def __post_init__(self) -> None:
        for name in ("title", "line", "right", "badge"):
            object.__setattr__(self, name, one_line(getattr(self, name)))

    @property
    def parts(self) -> tuple[str, ...]:
        """All that it says, in the order in which it is read."""
        return tuple(part for part in (self.title, self.badge, self.line, self.right) if part)

    @property
    def words(self) -> str:
        """All that it says, for those who do not see it."""
        return ", ".join(self.parts)


class RowModel(QAbstractListModel):
    """The rows of a list."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: tuple[ListRow, ...] = ()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Return how many rows there are."""
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the row itself, or its words for those who do not see it."""
        row = self.rows[index.row()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return row.words
        if role == Qt.ItemDataRole.ToolTipRole:
            return in_tip("\n".join(row.parts))
        return None

    def set_rows(self, rows: Sequence[ListRow]) -> None:
        """Show other rows; where only their words changed, nothing moves."""
        new = tuple(rows)
        if [row.key for row in new] == [row.key for row in self.rows]:
            changed = [at for at, row in enumerate(new) if row != self.rows[at]]
            self.rows = new
            self._tell(changed)
            return
        self.beginResetModel()
        self.rows = new
        self.endResetModel()

    def change_rows(self, changed: Mapping[str, ListRow]) -> None:
        """Show other words in the rows with these keys."""
        rows = list(self.rows)
        places = [at for at, row in enumerate(rows) if row.key in changed and changed[row.key] != row]
        for at in places:
            rows[at] = changed[rows[at].key]
        self.rows = tuple(rows)
        self._tell(places)

    def _tell(self, places: Sequence[int]) -> None:
        """Let the rows from the first to the last of these be painted: a list hears of hundreds in one go."""
        if places:
            self.dataChanged.emit(self.index(places[0]), self.index(places[-1]))


class RowList(QListView):
    """Rows to choose one from; what was chosen stays chosen when the rows change.

    It also stays in sight when the list gets room or loses it, until somebody scrolls.
    """

    chosen = Signal(str)  # the key of the current row, "" for none
    opened = Signal(str)  # by a click or Enter
    confirmed = Signal(str)  # by Enter alone

    def __init__(self, name: str, parent: QWidget | None = None, row_height: int = ROW_HEIGHT) -> None:
        super().__init__(parent)
        self.rows = RowModel(self)
        self.delegate = RowDelegate(self, row_height)
        self.setAccessibleName(name)
        self.setModel(self.rows)
        self.setItemDelegate(self.delegate)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.selectionModel().currentChanged.connect(self._on_current)
        self.clicked.connect(lambda index: self.opened.emit(index.data(ROW).key))
        self.verticalScrollBar().sliderMoved.connect(self._let_go)
        self._is_filling, self._stays_in_sight, self._is_led_by_mouse = False, True, False

    @property
    def key(self) -> str | None:
        """The key of the chosen row."""
        index = self.currentIndex()
        return index.data(ROW).key if index.isValid() else None

    def show_rows(self, rows: Sequence[ListRow]) -> None:
        """Show other rows."""
        before = self.key
        self._is_filling = True
        self.rows.set_rows(rows)
        if before is not None and self.key != before:
            self.choose(before)
        self._is_filling = False
        if self.key != before and before is not None:
            self.chosen.emit(self.key or "")

    def choose(self, key: str | None) -> None:
        """Choose the row with this key, or none."""
        at = next((at for at, row in enumerate(self.rows.rows) if row.key == key), None)
        self._stays_in_sight = True
        self.setCurrentIndex(QModelIndex() if at is None else self.rows.index(at))

    def enter(self) -> None:
        """Take the keyboard from a field above it, and choose a row where none is."""
        self.setFocus(Qt.FocusReason.TabFocusReason)
        if not self.currentIndex().isValid():
            self.setCurrentIndex(self.rows.index(0))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the chosen row in sight: what is below the list comes and goes."""
        super().resizeEvent(event)
        self._show_choice()

    def showEvent(self, event: QShowEvent) -> None:
        """Show what was chosen while the list could not be seen."""
        super().showEvent(event)
        self._show_choice()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll away from the chosen row."""
        self._let_go()
        super().wheelEvent(event)

    def _let_go(self) -> None:
        self._stays_in_sight = False

    def _show_choice(self) -> None:
        if self._stays_in_sight and self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Take the keyboard without choosing: Qt would make the first row the current one."""
        had_choice = self.currentIndex().isValid()
        self._is_filling = True
        super().focusInEvent(event)
        if not had_choice:
            self.setCurrentIndex(QModelIndex())
        self._is_filling = False
        if event.reason() not in (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason):
            self._is_led_by_mouse = event.reason() == Qt.FocusReason.MouseFocusReason
        tell_row(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Show that the keyboard is here, around the whole list while no row is chosen, unless the mouse led here."""
        super().paintEvent(event)
        if self.hasFocus() and not self._is_led_by_mouse and not self.currentIndex().isValid():
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            paint_ring(painter, self.viewport().rect())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens, once however long it is held."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.key is not None:
            if not event.isAutoRepeat():
                self.opened.emit(self.key)
                self.confirmed.emit(self.key)
        else:
            super().keyPressEvent(event)

    def _on_current(self, current: QModelIndex, previous: QModelIndex) -> None:
        self._stays_in_sight = True
        if not self._is_filling:
            self.chosen.emit(current.data(ROW).key if current.isValid() else "")


def tell_row(rows: QListView) -> None:
    """Let a screen reader say the row where the keyboard comes in: Qt names the list, a moment later, and no row."""

    def tell() -> None:
        if rows.currentIndex().isValid() and rows.hasFocus():
            event = QAccessibleEvent(rows, QAccessible.Event.Focus)
            event.setChild(rows.currentIndex().row())
            QAccessible.updateAccessibility(event)

    QTimer.singleShot(0, rows, tell)


class RowDelegate(QStyledItemDelegate):
    """Paints a row: its title alone where it has no line."""

    def __init__(self, parent: QWidget | None = None, row_height: int = ROW_HEIGHT) -> None:
        super().__init__(parent)
        self._row_height = row_height
        self._whole, self._way = QRect(), Qt.LayoutDirection.LeftToRight  # of the row that is painted

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the same height for all: a list of thousands needs no measuring."""
        return QSize(100, scaled(self._row_height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint one row."""
        row: ListRow = index.data(ROW)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = option.rect.adjusted(Space.S, 1, -Space.S, -1)
        paint_ground(painter, rect, option.state)
        inner = rect.adjusted(Space.M, Space.S - 1, -Space.M, -Space.S + 1)
        # All places are given from left to right.
        self._whole, self._way = QRect(inner), option.direction
        upper, lower = QRect(inner), QRect(inner)
        upper.setWidth(min(inner.width(), scaled(COLUMN)))  # farther apart no eye would connect name and figure
        upper.setBottom(inner.center().y() if row.line else inner.bottom())
        lower.setTop(inner.center().y() + 1)
        # In a row of one line it is a note on the title, as the keys of a command; in one of two it is a figure.
        upper.setRight(self._paint_right(painter, upper, row.right, colours().text if row.line else colours().muted))
        end = self._paint_words(painter, upper, row.title, Type.BODY, colours().text, QFont.Weight.Medium, row.badge)
        if row.badge:
            self._paint_badge(painter, QRect(end + Space.S, upper.y(), upper.right() - end, upper.height()), row)
        colour = colours().danger if row.has_problem else colours().muted
        self._paint_words(painter, lower, row.line, Type.CAPTION, colour)
        painter.restore()

    def _seen(self, place: QRect) -> QRect:
        return QStyle.visualRect(self._way, self._whole, place)

    def _paint_right(self, painter: QPainter, rect: QRect, text: str, colour: str) -> int:
        """Paint what stands at the end; return where the room before it ends."""
        if not text:
            return rect.right()
        painter.setFont(row_font(painter, Type.LABEL))
        painter.setPen(QColor(colour))
        draw_line(painter, self._seen(rect), text, Qt.AlignmentFlag.AlignRight)
        return rect.right() - painter.fontMetrics().horizontalAdvance(text) - Space.M

    def _paint_words(
        self,
        painter: QPainter,
        rect: QRect,
        text: str,
        size: int,
        colour: str,
        weight: QFont.Weight = QFont.Weight.Normal,
        badge: str = "",
    ) -> int:
        """Paint what fits, with room for a badge behind it; return where it ends."""
        painter.setFont(row_font(painter, size, weight))
        painter.setPen(QColor(colour))
        room = rect.width() - (_badge_width(painter, badge) + Space.S if badge else 0)
        # Names differ at their ends, facts are read from the start.
        is_name = weight is not QFont.Weight.Normal
        mode = Qt.TextElideMode.ElideMiddle if is_name else Qt.TextElideMode.ElideRight
        shown = fitting(text, painter.fontMetrics(), room, mode)
        draw_line(painter, self._seen(rect), shown)
        return rect.left() + painter.fontMetrics().horizontalAdvance(shown)

    def _paint_badge(self, painter: QPainter, rect: QRect, row: ListRow) -> None:
        soft = {"accent": "accent_soft", "warning": "warning_soft", "danger": "danger_soft"}[row.tone]
        painter.setFont(row_font(painter, Type.CAPTION))
        height = scaled(17)
        place = self._seen(QRect(rect.x(), rect.center().y() - height // 2, _badge_width(painter, row.badge), height))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(colours(), soft)))
        painter.drawRoundedRect(place, 8, 8)
        painter.setPen(QColor(getattr(colours(), row.tone)))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, row.badge)


def _badge_width(painter: QPainter, text: str) -> int:
    before = painter.font()
    painter.setFont(row_font(painter, Type.CAPTION))
    width = painter.fontMetrics().horizontalAdvance(text) + 14
    painter.setFont(before)
    return width


def paint_ground(painter: QPainter, rect: QRect, state: QStyle.StateFlag) -> None:
    """Paint what lies behind a row that is chosen, under the mouse, or where the keyboard is."""
    is_chosen = bool(state & QStyle.StateFlag.State_Selected)
    if is_chosen or state & QStyle.StateFlag.State_MouseOver:
        # An edge is seen in high contrast alone: elsewhere it is about as the ground.
        painter.setPen(QPen(QColor(colours().border), 1) if is_chosen else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours().pressed if is_chosen else colours().hover))
        painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), Corner.S, Corner.S)
    if state & QStyle.StateFlag.State_HasFocus:
        paint_ring(painter, rect)


def paint_ring(painter: QPainter, rect: QRect) -> None:
    """Paint what is around that which has the keyboard."""
    painter.setPen(QPen(QColor(colours().focus), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), Corner.S, Corner.S)


def row_font(painter: QPainter, size: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """Return the painter's font in a size at the usual size of text."""
    font = QFont(painter.font())
    font.setPixelSize(scaled(size))
    font.setWeight(weight)
    return font
