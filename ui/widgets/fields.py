"""Fields of a form: numbers, choices and boxes to tick. They leave the wheel to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QResizeEvent,
    QValidator,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStyleOptionFrame,
    QStyleOptionViewItem,
    QWidget,
)

from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.icon_button import IconButton

if TYPE_CHECKING:
    _SpinBox = QAbstractSpinBox
else:
    _SpinBox = object  # as in ``Dressed``
_MARGIN = 8
_SEARCH = 16  # pixels of the icon
_BESIDE_TEXT = 2  # pixels that Qt leaves free at both ends of a line
LABELS = 84  # pixels, the longest word before a field


class SearchField(Dressed, QLineEdit):
    """A line to search or filter by; ``name`` says what. Escape clears it."""

    down_pressed = Signal()  # the keyboard is wanted in what was found

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        # Qt's own icons in a field do not grow with the text.
        self._icon, self.clear_button = QLabel(self), IconButton("close", tr("Clear"), self, size=12)
        self._icon.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.clear_button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # for the keyboard there is Escape
        self.clear_button.clicked.connect(self.clear)
        self.clear_button.hide()
        self.textChanged.connect(self._on_text)
        self.dress()

    @property
    def width_of_name(self) -> int:
        """The width in which its name can be read whole."""
        self.ensurePolished()
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        margins, inside = self.textMargins(), self.fontMetrics().horizontalAdvance(self.placeholderText())
        room = QSize(inside + margins.left() + margins.right() + 2 * _BESIDE_TEXT, 0)
        return self.style().sizeFromContents(QStyle.ContentsType.CT_LineEdit, option, room, self).width()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let keys lead on from here."""
        if event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
            super().keyPressEvent(event)

    def dress(self) -> None:
        """Draw the icon, and leave room for both."""
        self._icon.setPixmap(pixmap("search", colours().muted, _SEARCH, self.devicePixelRatioF()))
        self.clear_button.dress()  # its size is needed now
        self._place_icons()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the icons at both ends."""
        super().resizeEvent(event)
        self._place_icons()

    def _on_text(self, text: str) -> None:
        self.clear_button.setVisible(bool(text))
        self._place_icons()

    def _place_icons(self) -> None:
        side, clear = scaled(_SEARCH), self.clear_button
        icon = QRect(_MARGIN, (self.height() - side) // 2, side, side)
        end = QRect(QPoint(self.width() - clear.width() - 2, (self.height() - clear.height()) // 2), clear.size())
        for part, place in ((self._icon, icon), (clear, end)):
            part.setGeometry(QStyle.visualRect(self.layoutDirection(), self.rect(), place))
        # The name has the place of the button, which is there for a text.
        before, after = side + _MARGIN // 2, side if self.text() else 0
        is_from_left = self.layoutDirection() is Qt.LayoutDirection.LeftToRight
        self.setTextMargins(*((before, 0, after, 0) if is_from_left else (after, 0, before, 0)))


class _NumberField(_SpinBox):
    """Stands before the class of a number's field."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setKeyboardTracking(False)

    def event(self, event: QEvent) -> bool:
        """Keep the text in view: without its buttons a field with a style sheet leaves it one pixel of width."""
        done = super().event(event)
        place = self.rect().adjusted(_MARGIN, 2, -_MARGIN, -2)
        if self.lineEdit().geometry() != place:
            self.lineEdit().setGeometry(place)
        return done

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not turn the number."""
        event.ignore()


class DecimalField(_NumberField, QDoubleSpinBox):
    """A number with digits after the point, or after the comma of the language."""

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Take a point and a comma alike: a number is often copied from where it is written the other way."""
        mark = self.locale().decimalPoint()
        return super().validate(text.replace(".", mark).replace(",", mark) if self.decimals() else text, position)


class WholeField(_NumberField, QSpinBox):
    """A whole number."""


class NoWheelSlider(QSlider):
    """A horizontal slider that leaves the wheel to the page."""

    def __init__(self, name: str) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setAccessibleName(name)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not move the handle."""
        event.ignore()


_ARROW = 4
_FROM_END = 15
# A longer list scrolls.
_SHOWN_CHOICES = 12
_LEAST_CHOICE = 120  # the width that a field of choices keeps


class ChoiceField(QComboBox):
    """Looks like the text fields, with an arrow at its end."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        # On Linux the name that a screen reader is given is what is chosen.
        self.setAccessibleDescription(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMaxVisibleItems(_SHOWN_CHOICES)
        # Without it Qt draws the lines as a menu's, which no style sheet reaches.
        self.setItemDelegate(QStyledItemDelegate(self))

    def minimumSizeHint(self) -> QSize:
        """Leave a narrow page to be as narrow as it is, however long a choice is."""
        hint = super().minimumSizeHint()
        return QSize(min(hint.width(), scaled(_LEAST_CHOICE)), hint.height())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the page, do not choose."""
        event.ignore()

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """Leave out what there is no room for, rather of the beginning: the end tells a model's quantisations apart."""
        super().initStyleOption(option)
        part, control = QStyle.SubControl.SC_ComboBoxEditField, QStyle.ComplexControl.CC_ComboBox
        room = self.style().subControlRect(control, option, part, self).width()
        metrics, text = self.fontMetrics(), option.currentText
        if metrics.horizontalAdvance(text) > room:
            beginning = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room // 3).rstrip("…")
            end = metrics.elidedText(text, Qt.TextElideMode.ElideLeft, room - metrics.horizontalAdvance(beginning))
            option.currentText = beginning + end

    def showPopup(self) -> None:
        """Show all of each choice, as far as the screen is wide."""
        view = self.view()
        view.setMinimumWidth(min(view.sizeHintForColumn(0) + 2 * Space.S, self.screen().availableGeometry().width()))
        super().showPopup()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the arrow, which a style sheet takes away."""
        super().paintEvent(event)
        is_from_left = self.layoutDirection() is Qt.LayoutDirection.LeftToRight
        x, y = self.width() - _FROM_END if is_from_left else _FROM_END, self.height() / 2
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().color(QPalette.ColorRole.PlaceholderText), 1.6))
        side = scaled(_ARROW)
        points = (QPointF(x - side, y - side / 2), QPointF(x, y + side / 2), QPointF(x + side, y - side / 2))
        painter.drawPolyline(QPolygonF(points))
        painter.end()


class CheckField(QCheckBox):
    """Draws its own tick, which a style sheet takes away, and the ring of the keyboard in the box itself."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)  # Qt's is as wide as its words

    def minimumSizeHint(self) -> QSize:
        """Leave a narrow page to be as narrow as it is, however long the words are."""
        hint = super().minimumSizeHint()
        return QSize(min(hint.width(), scaled(_LEAST_CHOICE)), hint.height())

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        """End the words in an ellipsis where there is no room for all of them."""
        super().initStyleOption(option)
        room = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self).width()
        mode, flag = Qt.TextElideMode.ElideRight, Qt.TextFlag.TextShowMnemonic.value
        option.text = self.fontMetrics().elidedText(self.text(), mode, room, flag)

    def hitButton(self, at: QPoint) -> bool:
        """Take clicks in the whole line."""
        return self.rect().contains(at)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the tick over the box, and the ring; in a ticked box a line sets it apart."""
        super().paintEvent(event)
        painter, option = QPainter(self), QStyleOptionButton()
        self.initStyleOption(option)
        box = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        if self.isChecked():
            _draw_tick(painter, box)
        if self.hasFocus():
            palette = QGuiApplication.palette()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for inset, width, role in (2.5, 1.0, palette.ColorRole.Base), (1.0, 2.0, palette.ColorRole.Accent):
                painter.setPen(QPen(palette.color(role), width))
                painter.drawRoundedRect(QRectF(box).adjusted(inset, inset, -inset, -inset), 3.0, 3.0)
        painter.end()


class TickDelegate(QStyledItemDelegate):
    """Draws the ticks of a list, and takes clicks in the whole line."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Leave room between the boxes."""
        return super().sizeHint(option, index) + QSize(0, Space.S)

    def editorEvent(
        self,
        event: QEvent,
        model: QAbstractItemModel,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        """Tick a line by a click anywhere in it."""
        if not isinstance(event, QMouseEvent):
            return super().editorEvent(event, model, option, index)
        is_click = event.type() == QEvent.Type.MouseButtonRelease and event.button() == Qt.MouseButton.LeftButton
        if is_click and option.rect.contains(event.position().toPoint()):
            role, states = Qt.ItemDataRole.CheckStateRole, Qt.CheckState
            is_ticked = states(index.data(role) or 0) is states.Checked
            return model.setData(index, states.Unchecked if is_ticked else states.Checked, role)
        return False

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw the tick over the box."""
        super().paint(painter, option, index)
        if Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole) or 0) is Qt.CheckState.Checked:
            self.initStyleOption(option, index)
            element = QStyle.SubElement.SE_ItemViewItemCheckIndicator
            _draw_tick(painter, option.widget.style().subElementRect(element, option, option.widget))


def _draw_tick(painter: QPainter, box: QRect) -> None:
    places = ((0.24, 0.52), (0.43, 0.71), (0.77, 0.31))
    points = [QPointF(box.x() + x * box.width(), box.y() + y * box.height()) for x, y in places]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QGuiApplication.palette().color(QPalette.ColorRole.Base), scaled(2)))
    painter.drawPolyline(QPolygonF(points))
    painter.restore()


class FieldGrid(QGridLayout):
    """Fields one below the other, each behind its label."""

    def __init__(self) -> None:
        super().__init__()
        self.setHorizontalSpacing(Space.M)
        self.setColumnMinimumWidth(0, LABELS)

    def add(self, words: str, field: QWidget, *more: QWidget) -> QLabel:
        """Add a field, with ``more`` at its end; return its label. A field of a fixed width stands at the beginning."""
        label, at = QLabel(words), self.rowCount()
        label.setProperty("tone", "caption")
        label.setBuddy(field)
        self.addWidget(label, at, 0)
        line = fill(QHBoxLayout(), field, *more, spacing=Space.XS)
        if field.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Fixed:
            line.addStretch()
        else:
            line.setStretchFactor(field, 1)
        self.addLayout(line, at, 1)
        return label


class Eye(IconButton):
    """A button that shows a secret and hides it again; ``show`` and ``hide`` are its names meanwhile."""

    changed = Signal(bool)  # whether the secret is shown now

    def __init__(self, show: str, hide: str) -> None:
        super().__init__("eye", show, size=16)
        self._names, self.shows = (show, hide), False
        self.clicked.connect(self._on_clicked)

    def _on_clicked(self) -> None:
        self.shows = not self.shows
        self.show_as("eye-off" if self.shows else "eye", self._names[self.shows])
        self.changed.emit(self.shows)


class CopyLine(QWidget):
    """Shows ``name`` as text that can be selected, with a button that copies it; a secret is hidden until asked for."""

    def __init__(self, name: str, *, is_secret: bool = False) -> None:
        super().__init__()
        self.field = QLineEdit(readOnly=True)
        self.field.setAccessibleName(name)
        self.copy = IconButton("copy", tr("Copy the {lower}", lower=name.lower()), size=16)
        self.copy.clicked.connect(self._on_copy)
        self.eye = Eye(tr("Show the {lower}", lower=name.lower()), tr("Hide the {lower}", lower=name.lower()))
        self.eye.changed.connect(self._show_secret)
        if not is_secret:
            self.eye.hide()
        else:
            self._show_secret(False)
        fill(QHBoxLayout(self), (self.field, 1), self.eye, self.copy, spacing=Space.XS, margins=0)

    def show_text(self, text: str) -> None:
        """Show another text, from its beginning."""
        if text != self.field.text():
            self.field.setText(text)
            self.field.setCursorPosition(0)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.field.text())
        self.copy.say_done(tr("Copied"))

    def _show_secret(self, is_shown: bool) -> None:
        modes = QLineEdit.EchoMode
        self.field.setEchoMode(modes.Normal if is_shown else modes.Password)
