"""How soon the reply is wanted: a button beside the field, and a small card with one line on each choice."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPixmap
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from ui.client.speeds import CHOICE_OF, CHOICES, Speed, SpeedChoice
from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap, set_icon
from ui.theme.layouts import against_reading
from ui.theme.text_size import scaled
from ui.theme.tokens import AROUND_ICON, ICON, Space
from ui.widgets.page_layout import plain_label

CARD_WIDTH, MARK = 340, 16


class SpeedPicker(Dressed, QToolButton):
    """Shows the speed of the chat and lets another be chosen."""

    chosen = Signal(object)  # Speed

    def __init__(self) -> None:
        super().__init__()
        self.speed = Speed.AUTO
        self._no_spark = ""
        self.setProperty("kind", "speed")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setLayoutDirection(against_reading())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.clicked.connect(self.open)
        self.card = SpeedCard(self)
        self.card.chosen.connect(self._on_chosen)
        self.show_speed(Speed.AUTO)
        self.dress()

    def show_speed(self, speed: Speed) -> None:
        """Show the speed of another chat."""
        self.speed = speed
        choice = CHOICE_OF[speed]
        self.setText(choice.name)
        self.setAccessibleName(tr("Speed: {name}", name=choice.name))
        self.setToolTip(tr("Speed: {line}", line=choice.line))

    def set_no_spark(self, reason: str) -> None:
        """Say why Spark cannot be chosen; "" where it can."""
        self._no_spark = reason

    def dress(self) -> None:
        """Draw the arrow."""
        set_icon(self, "down", colours().muted, size=12)
        # As high as the buttons beside it.
        self.setFixedHeight(scaled(ICON) + AROUND_ICON)

    def open(self) -> None:
        """Show the choices above the button."""
        self.card.fill(self.speed, self._no_spark, self.devicePixelRatioF())
        window = self.window()
        self.card.fit(min(scaled(CARD_WIDTH), window.width() - 2 * Space.S))
        beside = 0 if QGuiApplication.isRightToLeft() else self.width() - self.card.width()  # their ends in one line
        corner = self.mapTo(window, QPoint(beside, -self.card.height() - Space.S))
        left = min(max(corner.x(), Space.S), window.width() - self.card.width() - Space.S)
        self.card.move(window.mapToGlobal(QPoint(left, corner.y())))
        self.card.show()
        self.card.rows[self.speed].setFocus()

    def _on_chosen(self, speed: Speed) -> None:
        if speed is not self.speed:
            self.show_speed(speed)
            self.chosen.emit(speed)


class SpeedCard(QFrame):
    """The choices, one below the other; arrows move, Enter chooses, Escape leaves."""

    chosen = Signal(object)  # Speed

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("speedCard")
        self.rows = {choice.speed: _Row(choice) for choice in CHOICES}
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(Space.XS + 2, Space.XS + 2, Space.XS + 2, Space.XS + 2)
        column.setSpacing(0)
        for speed, row in self.rows.items():
            column.addWidget(row)
            row.clicked.connect(lambda checked=False, speed=speed: self._on_row(speed))

    def fill(self, shown: Speed, no_spark: str, ratio: float) -> None:
        """Mark what is chosen, and what cannot be."""
        for speed, row in self.rows.items():
            row.set_mark(pixmap("check", colours().accent, MARK, ratio) if speed is shown else None)
        self.rows[Speed.SPARK].set_problem(no_spark)

    def fit(self, width: int) -> None:
        """Be so wide, and give each choice the height that its lines take there."""
        self.setFixedWidth(width)
        self.ensurePolished()
        for margins in (self.contentsMargins(), self._column.contentsMargins()):
            width -= margins.left() + margins.right()
        for row in self.rows.values():
            row.setFixedHeight(row.heightForWidth(width))
        self.adjustSize()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with the arrows."""
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}
        if event.key() in steps:
            self._step(steps[Qt.Key(event.key())])
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            for row in self.rows.values():
                if row.hasFocus():
                    row.click()
        else:
            super().keyPressEvent(event)

    def _step(self, step: int) -> None:
        usable = [row for row in self.rows.values() if row.isEnabled()]
        at = next((i for i, row in enumerate(usable) if row.hasFocus()), -1)
        usable[(at + step) % len(usable)].setFocus(Qt.FocusReason.TabFocusReason)

    def _on_row(self, speed: Speed) -> None:
        self.hide()
        self.chosen.emit(speed)


class _Row(QPushButton):
    """A choice: its name, and below it what it does."""

    def __init__(self, choice: SpeedChoice) -> None:
        super().__init__()
        self._choice = choice
        self.setProperty("kind", "choice")
        self.setAccessibleName(choice.name)
        self._name, self._line, self._mark = QLabel(choice.name), plain_label(choice.line, "caption"), QLabel()
        self._name.setProperty("tone", "strong")
        self._grid = grid = QGridLayout(self)
        grid.setContentsMargins(Space.S, Space.XS + 2, Space.S, Space.XS + 2)
        grid.setHorizontalSpacing(Space.S)
        grid.setVerticalSpacing(1)
        grid.addWidget(self._mark, 0, 0)
        grid.addWidget(self._name, 0, 1)
        grid.addWidget(self._line, 1, 1)
        grid.setColumnStretch(1, 1)
        for label in (self._name, self._line, self._mark):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.set_problem("")

    @property
    def line(self) -> str:
        """What is said below the name."""
        return self._line.text()

    def set_mark(self, mark: QPixmap | None) -> None:
        """Show that this one is chosen, or that it is not."""
        self._mark.setFixedSize(scaled(MARK), scaled(MARK))
        self._mark.setPixmap(mark or QPixmap())
        name = self._choice.name
        self.setAccessibleName(name if mark is None else tr("{name}, chosen", name=name))

    def set_problem(self, problem: str) -> None:
        """Say why this one cannot be chosen; "" where it can."""
        self.setEnabled(not problem)
        self._line.setText(problem or self._choice.line)
        self.setAccessibleDescription(self._line.text())

    def heightForWidth(self, width: int) -> int:
        """Return the height that the wrapped lines take."""
        return self._grid.heightForWidth(width)
