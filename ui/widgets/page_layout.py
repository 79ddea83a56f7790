"""What pages and dialogs are made of: their size, tabs, what scrolls, and columns of sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from PySide6.QtCore import QDir, QEvent, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAction,
    QActionGroup,
    QCursor,
    QFont,
    QFontMetrics,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QButtonGroup,
    QComboBox,
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap, set_icon
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import COLUMN, TOP_BAR, Space
from ui.widgets.flow_layout import FlowLayout

TAB_SIDE = 13  # as in the style sheet: border, padding, and a pixel
_PREPARE_MS = 50
_ARROWS = {"backButton": "left", "forwardButton": "right", "toParentButton": "up"}  # of Qt's dialog for files
_TAB_STOPS = (
    Qt.FocusPolicy.ClickFocus,
    Qt.FocusPolicy.StrongFocus,
)  # without and with Tab
_View = TypeVar("_View", bound=QWidget)
_LONG_WORD = re.compile(r"\S{24}(?=\S)")  # so many letters have room in any font


class PageTabs(QFrame):
    """Tabs by their names; ``row`` takes what stands at the end. The keys are those of ``parent``, the page.

    Where there is too little room beside each other some stand below; one alone that is too long ends in an ellipsis.
    """

    chosen = Signal(str)

    def __init__(self, names: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("topBar")
        self.tabs: dict[str, QPushButton] = {}
        self._words = {name: name for name in names}
        self._flow = FlowLayout(spacing=Space.XS)
        centred = fill(QVBoxLayout(), STRETCH, self._flow, STRETCH)
        self.row = fill(QHBoxLayout(self), (centred, 1), spacing=Space.XS, margins=(Space.M, 0, Space.S, 0))
        group = QButtonGroup(self)
        for number, name in enumerate(names, 1):
            tab = QPushButton(name)
            tab.setProperty("kind", "tab")
            tab.setCheckable(True)
            tab.setCursor(Qt.CursorShape.PointingHandCursor)
            tab.setToolTip(tr("{name} (Ctrl+{number})", name=name, number=number))
            tab.clicked.connect(lambda checked=False, name=name: self.chosen.emit(name))
            # Tab stops at the one that is shown, and the arrows go on from there: Qt would stop at the one used last.
            tab.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            tab.toggled.connect(lambda is_shown, tab=tab: tab.setFocusPolicy(_TAB_STOPS[is_shown]))
            # Of the pages that have these keys, only the one that is seen takes them.
            QShortcut(QKeySequence(f"Ctrl+{number}"), parent, lambda name=name: self.chosen.emit(name))
            group.addButton(tab)
            self._flow.addWidget(tab)
            self.tabs[name] = tab
        self.tabs[names[0]].setChecked(True)

    def write(self, name: str, words: str) -> None:
        """Put other words on a tab."""
        self._words[name] = words
        self.fit()

    def fit(self) -> None:
        """Leave room for the letters of a chosen tab, which are bold: Qt asks for that of the others."""
        font = QFont(next(iter(self.tabs.values())).font())
        font.setWeight(QFont.Weight.DemiBold)
        metrics = QFontMetrics(font)
        most = self._room()
        for name, words in self._words.items():
            tab, wanted = self.tabs[name], metrics.horizontalAdvance(words) + 2 * TAB_SIDE
            room = min(wanted, most) if self.isVisible() else wanted
            elided = metrics.elidedText(words, Qt.TextElideMode.ElideRight, room - 2 * TAB_SIDE)
            tab.setText(elided if room < wanted else words)
            tab.setAccessibleName(words)
            tab.setMinimumWidth(room)
        self.setFixedHeight(
            max(TOP_BAR, self._flow.heightForWidth(most) + 2 * Space.S) if self.isVisible() else TOP_BAR
        )

    def minimumSizeHint(self) -> QSize:
        """Be as narrow as the window is."""
        return QSize(0, super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        """Find out how much room there is."""
        super().showEvent(event)
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room that there is."""
        super().resizeEvent(event)
        self.fit()

    def _room(self) -> int:
        """How much of the width is left for tabs."""
        margins, items = self.row.contentsMargins(), [self.row.itemAt(at) for at in range(1, self.row.count())]
        others = sum(item.sizeHint().width() + self.row.spacing() for item in items if item is not None)
        return self.width() - margins.left() - margins.right() - others


def lay_out(layers: int = 1) -> None:
    """Give everything its place now, through so many layouts within each other: each grows once those in it have."""
    for _ in range(layers):
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)


class ScrollColumn(QScrollArea):
    """Shows what may be higher than its room: it scrolls up and down only. The keyboard is for what is in it.

    What has the keyboard stays in sight when the window or what is above it changes, unless the user scrolled it away.
    """

    def __init__(self, body: QWidget) -> None:
        super().__init__()
        self.body = body
        self.setObjectName("scroll")
        body.setObjectName("scrollBody")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(body)
        self._scrolled_away: QWidget | None = None  # had the keyboard out of sight when it was scrolled last
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_value)
        bar.rangeChanged.connect(self._on_range)

    @property
    def _focused(self) -> QWidget | None:
        """What in it has the keyboard."""
        focused = self.window().focusWidget()
        return focused if focused is not None and self.body.isAncestorOf(focused) else None

    def hold_focused(self) -> None:
        """Leave what has the keyboard where it is in the window, though what is above it is about to change."""
        focused, view, bar = self._focused, self.viewport(), self.verticalScrollBar()
        if focused is None:
            return
        before = focused.mapTo(view, QPoint()).y()

        def put_back() -> None:
            lay_out(4)  # from a section's note to the page
            bar.setValue(bar.value() + focused.mapTo(view, QPoint()).y() - before)

        QTimer.singleShot(0, focused, put_back)

    def _on_value(self, value: int) -> None:
        focused = self._focused
        self._scrolled_away = focused if focused is not None and focused.visibleRegion().isEmpty() else None

    def _on_range(self, minimum: int, maximum: int) -> None:
        self._show_focused(self._scrolled_away)

    def _show_focused(self, scrolled_away: QWidget | None) -> None:
        """Scroll to what has the keyboard where it is out of sight, unless it was before."""
        focused = self._focused
        if focused is None or focused is scrolled_away or not focused.isVisible():
            return
        if focused.visibleRegion().isEmpty():
            self.ensureWidgetVisible(focused)

    def showEvent(self, event: QShowEvent) -> None:
        """Lay out what was hidden while the window became narrower: Qt can leave it as wide as it was."""
        super().showEvent(event)
        layout = self.body.layout()
        if layout is not None and layout.geometry().width() != self.body.width():
            layout.setGeometry(self.body.rect())

    def centre(self, layout: QBoxLayout, width: int, edge: int) -> None:
        """Keep a layout in the middle, ``width`` pixels wide as far as there is room, ``edge`` from top and bottom.

        Its sides stay where they are when the scroll bar comes: a text that grows does not jump.
        """
        side, bar = self.side_of(width), self.width() - self.viewport().width()
        fill(layout, margins=(side, edge, side - bar, edge))

    def side_of(self, width: int) -> int:
        """Return how much room there is on each side of a column of ``width`` pixels."""
        return max(Space.XL, (self.width() - width) // 2)


class TabPage(Dressed, QWidget):
    """Views behind tabs, one at a time; it has the keyboard where the one that is shown has it.

    Each view is made when it is first wanted, or by ``prepare`` while nothing else happens: all at once would hold up
    the window.
    """

    def __init__(self, views: Mapping[str, Callable[[], QWidget]]) -> None:
        """``views`` returns the view of each tab, which is made at the first call and ``placed``."""
        super().__init__()
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._views, self._unprepared = views, list(views.values())
        self.top = PageTabs(tuple(views), self)
        self.top.chosen.connect(self.show_tab)
        self.tabs = self.top.tabs
        self.stack = QStackedWidget()
        self._prepare = QTimer(self, interval=_PREPARE_MS)
        self._prepare.timeout.connect(self._make_next)
        fill(QVBoxLayout(self), self.top, (self.stack, 1), spacing=0, margins=0)
        self.dress()

    @property
    def shown(self) -> QWidget:
        """The view that is shown."""
        return next(view() for name, view in self._views.items() if self.tabs[name].isChecked())

    def placed(self, name: str, view: _View) -> _View:
        """Return a new view, at its place behind the tab of this name."""
        view.setAccessibleName(name)
        self.stack.addWidget(view)
        return view

    def prepare(self) -> None:
        """Make the views one by one, each in a moment of its own."""
        self._prepare.start()

    def _make_next(self) -> None:
        if self._unprepared:
            self._unprepared.pop(0)()
        if not self._unprepared:
            self._prepare.stop()

    def show_tab(self, name: str) -> None:
        """Show one of the views, and give it the keyboard."""
        self.tabs[name].setChecked(True)
        self._show()
        self.setFocus()

    def showEvent(self, event: QShowEvent) -> None:
        """Make what is seen now."""
        super().showEvent(event)
        self._show()

    def _show(self) -> None:
        self.stack.setCurrentWidget(self.shown)
        self.setFocusProxy(self.shown)

    def dress(self) -> None:
        """Leave room for the names of the tabs."""
        self.top.fit()


class PageColumn(ScrollColumn):
    """Holds sections, each with a title and a line on what it is for.

    ``width`` is that of the column, in pixels at the usual size of text, as far as there is room.
    """

    def __init__(self, width: int = COLUMN) -> None:
        super().__init__(QWidget())
        self._width = width
        self.column = QVBoxLayout(self.body)
        self.column.setSpacing(Space.XL)
        self.column.addStretch(1)

    def add_section(self, title: str, note: str = "") -> QVBoxLayout:
        """Return the layout of a new section at the end."""
        section = QVBoxLayout()
        section.setSpacing(Space.S)
        section.addWidget(plain_label(title, "title"))
        if note:
            section.addWidget(plain_label(note))
        self.column.insertLayout(self.column.count() - 1, section)
        return section

    @property
    def side(self) -> int:
        """How much room there is on each side of the column."""
        return self.side_of(scaled(self._width))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the column readable."""
        # Before Qt sizes what is in it: margins that change behind that can leave the layout as wide as it was.
        self._centre()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Be as wide as the size of text asks for."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._centre()

    def _centre(self) -> None:
        self.centre(self.column, scaled(self._width), Space.XL)


class ThinProgressBar(QProgressBar):
    """A thin line that says how far something is."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.setObjectName("progressLine")
        self.setAccessibleName(name)
        self.setTextVisible(False)
        self.setRange(0, 1_000)

    def show_share(self, share: float | None, *, is_calm: bool = False, is_loading: bool = False) -> None:
        """Fill this share of it; None is not known. ``is_calm``: nothing happens just now.

        ``is_loading``: a model that was read whole is still made ready, and a full line would look like the end.
        """
        if is_loading and share is not None and share >= 1.0:
            share = None
        self.setRange(0, 0 if share is None else 1_000)
        self.setValue(round((share or 0.0) * 1_000))
        style_as(self, "tone", "calm" if is_calm else "busy")


def open_size(dialog: QDialog, width: int, height: int, parent: QWidget) -> None:
    """Give a dialog its size, in pixels at the usual size of text, as far as there is room in the window below it."""
    room = parent.window().size()
    dialog.resize(min(scaled(width), room.width() - 2 * Space.L), min(scaled(height), room.height() - 2 * Space.L))


def ask_first(
    parent: QWidget, question: str, more: str, action: str, act: Callable[[], object], *, by_enter: bool = False
) -> QMessageBox:
    """Ask before something is done; ``act`` is what the button ``action`` does, ``by_enter`` also the key.

    Return the question, which is deleted when it was answered.
    """
    box = QMessageBox(parent.window())
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(action)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(_breaking(question))
    box.setInformativeText(_breaking(more))
    goes_on = box.addButton(action, QMessageBox.ButtonRole.AcceptRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(goes_on if by_enter else cancel)
    box.buttonClicked.connect(lambda button: act() if button is goes_on else None)
    box.open()
    return box


def _breaking(text: str) -> str:
    """Return text whose long words, as names and addresses can be, go on on the next line: boxes are not as wide."""
    return _LONG_WORD.sub("\\g<0>\N{ZERO WIDTH SPACE}", text)


def file_dialog(parent: QWidget, title: str, filters: str = "") -> QFileDialog:
    """Return a dialog for files, which begins where one was chosen last, else in the user's folder."""
    dialog = QFileDialog(parent.window(), title, "", filters)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    if dialog.directory() == QDir.current():  # Qt's own choice is the folder of this program
        dialog.setDirectory(QDir.homePath())
    for box in dialog.findChildren(QComboBox):  # where the desktop has no dialog of its own, Qt's is shown
        arrow = QLabel()  # the style sheet takes Qt's own away
        arrow.setPixmap(pixmap("down", colours().muted, 12, dialog.devicePixelRatioF()))
        arrow.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        fill(QHBoxLayout(box), STRETCH, arrow, margins=(0, 0, Space.S, 0))
    for button in dialog.findChildren(QToolButton):
        if button.objectName() in _ARROWS:  # Qt's own are black in each theme
            set_icon(button, _ARROWS[button.objectName()], colours().text, colours().disabled)
    return dialog


def choose_folder(parent: QWidget, title: str, chosen: Callable[[str], object]) -> None:
    """Ask for a folder; ``chosen`` gets its path."""
    dialog = file_dialog(parent, title)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.fileSelected.connect(chosen)
    dialog.open()


def plain_label(text: str = "", tone: str = "muted", *, can_select: bool = False) -> QLabel:
    """Return a label of plain text that takes as many lines as it needs; ``can_select``: for the mouse, to copy it."""
    label = QLabel(text)
    label.setProperty("tone", tone)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if can_select:
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def style_as(widget: QWidget, name: str, value: object) -> None:
    """Let a widget look as the style sheet has it for this value of a property."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().polish(widget)


def set_menu(button: QPushButton | QToolButton, menu: QMenu) -> None:
    """Let a button open a menu."""
    button.setMenu(menu)
    menu.aboutToShow.connect(lambda: _forget_mouse_when_closed(menu, button))


def _forget_mouse_when_closed(menu: QMenu, button: QWidget) -> None:
    """Qt does not tell a button that the mouse has gone into its menu: it would look as if it were still there."""

    def look() -> None:
        is_here = button.rect().contains(button.mapFromGlobal(QCursor.pos()))
        if button.underMouse() is not is_here:
            button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, is_here)
            button.update()

    # Later, as it is still being closed; a menu may outlive its button.
    menu.aboutToHide.connect(
        lambda: QTimer.singleShot(0, button, look) if isValid(button) else None,
        Qt.ConnectionType.SingleShotConnection,
    )


def open_menu(menu: QMenu, button: QWidget, *, is_above: bool = False) -> None:
    """Open a menu below a button, or above it, where the button begins."""
    size, edge = menu.sizeHint(), button.rect()
    left = edge.right() + 1 - size.width() if menu.isRightToLeft() else edge.left()
    _forget_mouse_when_closed(menu, button)
    menu.popup(button.mapToGlobal(QPoint(left, edge.top() - size.height() if is_above else edge.bottom())))


Way = tuple[str, Callable[[], object]]
"""What can be done about something: the words for it, and the deed."""


def offer_ways(ways: Iterable[Way], button: QWidget, parent: QWidget, nothing: str = "") -> None:
    """Offer what can be done in a menu at a button; ``nothing`` is what it says where there are no ways."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for words, act in ways:
        menu.addAction(words, act)
    if menu.isEmpty() and nothing:
        menu.addAction(nothing).setEnabled(False)
    open_menu(menu, button)


def add_choices(menu: QMenu, choices: Iterable[tuple[str, bool, Callable[[], object]]]) -> None:
    """Add to a menu what one of is chosen: the words of each, whether it is the one, and what chooses it."""
    group = QActionGroup(menu)
    for words, is_chosen, choose in choices:
        action = group.addAction(QAction(words, menu))
        action.setCheckable(True)
        action.setChecked(is_chosen)
        action.triggered.connect(lambda checked=False, choose=choose: choose())
        menu.addAction(action)


def announce(widget: QWidget, words: str) -> None:
    """Let a screen reader say what comes up while the keyboard is elsewhere; what is not in sight is not said."""
    if words and widget.isVisible() and QApplication.activeWindow() is not None:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


def leave_keyboard(widget: QWidget) -> bool:
    """Give the keyboard of a widget that goes away to what it was in; False where that takes none.

    Qt would give it to the next one, which may be at the other end of the window: what is typed would be lost.
    """
    around = widget.parentWidget()
    while around is not None and not around.isWindow():
        above = around.parentWidget()
        if isinstance(above, QScrollArea) and above.viewport() is around:
            # Its proxy. If it is asked, PySide takes the area for a part of the viewport, and what the area holds for
            # gone when nobody knows the viewport any more.
            to: QWidget | None = above
        else:
            to = around.focusProxy() or (around if isinstance(around, QScrollArea) else None)
        if to is not None and to.isVisible() and to.isEnabled():
            to.setFocus()
            return True
        around = above
    return False


def disable(button: QWidget) -> Callable[[], None]:
    """Disable a button; return what enables it again, with the keyboard if that has not gone elsewhere meanwhile."""
    had_keyboard = button.hasFocus()
    button.setEnabled(False)
    now = button.window().focusWidget()  # Qt has given it to another one

    def enable() -> None:
        button.setEnabled(True)
        if had_keyboard and button.window().focusWidget() is now:
            button.setFocus()

    return enable


class ProblemLabel(QLabel):
    """Says what went wrong; hidden while nothing did."""

    def __init__(self, tone: str = "problem") -> None:
        super().__init__()
        self.setProperty("tone", tone)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.hide()

    def say(self, words: str) -> None:
        """Show these words, and let a screen reader say them once; "" is for nothing."""
        is_new = self.isHidden() or self.text() != words
        self.setText(words)
        self.setVisible(bool(words))
        if is_new:
            announce(self, words)
