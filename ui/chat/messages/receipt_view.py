"""The line under a reply, which opens: where its time went, its figures, and why it was this fast."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QGridLayout,
    QLabel,
    QSizePolicy,
    QStyle,
    QStyleOption,
    QVBoxLayout,
    QWidget,
)

from models.formatting.figures import milliseconds
from ui.chat.messages.receipts import Phase, phases, receipt_facts, what_would_help, why_this_fast
from ui.client.chat_records import Timings
from ui.language import DOT, tr
from ui.theme.colours import colours
from ui.theme.icons import pixmap
from ui.theme.layouts import visual_rect
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.elided_label import draw_line, fitting
from ui.widgets.facts_grid import LABELS, FactsGrid
from ui.widgets.fields import CheckField
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import plain_label

_BAR = 8  # pixels, as the dots beside the words
_LEAST = 2.0  # pixels of a phase that took any time at all
_ARROW = 14
_EDGE = 2  # of the style sheet's border


class ReceiptLine(QAbstractButton):
    """A line of figures, fewer where there is no room. One that has more to show opens by click and by keyboard."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("receiptLine")
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.toggled.connect(lambda is_open: self._tell())
        self.set_openable(False)

    def set_openable(self, can_open: bool) -> None:
        """Say whether there is more to show; a line without more takes no click and no focus."""
        self.setEnabled(can_open)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if can_open else Qt.FocusPolicy.NoFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor if can_open else Qt.CursorShape.ArrowCursor)
        if not can_open:
            self.setChecked(False)
        self._tell()

    def setText(self, text: str) -> None:
        """Show other figures."""
        if text != self.text():
            super().setText(text)
            self.setAccessibleName(tr("Receipt: {words}", words=", ".join(text.split(DOT))))
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """One line."""
        width = self.fontMetrics().horizontalAdvance(self.text()) + scaled(_ARROW) + Space.S
        return QSize(width, self.fontMetrics().height() + 2 * (_EDGE + 1))

    def minimumSizeHint(self) -> QSize:
        """Ask for no width at all."""
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what fits."""
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        place = self.rect().adjusted(_EDGE, 0, -_EDGE, 0)
        colour = colours().text if self.isChecked() or self.underMouse() else colours().muted
        if self.isEnabled():
            arrow = pixmap("down" if self.isChecked() else "right", colour, _ARROW, self.devicePixelRatioF())
            side = scaled(_ARROW)
            at = QRect(place.left(), (self.height() - side) // 2, side, side)
            painter.drawPixmap(QStyle.visualRect(self.layoutDirection(), self.rect(), at), arrow)
            place.setLeft(place.left() + side + 2)
        painter.setPen(QColor(colour if self.isEnabled() else colours().muted))
        draw_line(painter, QStyle.visualRect(self.layoutDirection(), self.rect(), place), self.fitting(place.width()))

    def fitting(self, width: int) -> str:
        """Return the figures that fit whole into so many pixels; of the first at least its beginning."""
        return fitting(self.text(), self.fontMetrics(), width)

    def _tell(self) -> None:
        state = tr("Open") if self.isChecked() else tr("Closed")
        self.setAccessibleDescription(state if self.isEnabled() else "")
        self.setToolTip(tr("How fast this reply was, and why") if self.isEnabled() else "")
        self.update()


class ReceiptCard(QFrame):
    """What an open receipt shows."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("receiptCard")
        self.setAccessibleName(tr("How fast this reply was"))
        self.bar = PhaseBar()
        self._legend = QGridLayout()
        self._legend.setHorizontalSpacing(Space.M)
        self._legend.setVerticalSpacing(Space.XS + 2)
        self._legend.setColumnMinimumWidth(1, LABELS - _BAR - Space.M)  # as the facts' labels have at least
        self._legend.setColumnStretch(3, 1)
        self.facts = FactsGrid(can_halve=True)
        self.why, self.help = plain_label(tone="", can_select=True), plain_label(can_select=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.M, Space.L, Space.M)
        column.setSpacing(Space.M)
        column.addWidget(self.why)
        column.addWidget(self.bar)
        column.addLayout(self._legend)
        column.addWidget(self.facts)
        column.addWidget(self.help)
        self.tint = CheckField(tr("Tint drafted words"))
        self.race = TextButton(tr("Race this prompt…"))
        self.race.setToolTip(
            tr("Answer it once plainly and once with drafts, or by another model, and compare the speeds")
        )
        foot = FlowLayout(spacing=Space.S)  # large text in a narrow window has no room for both beside each other
        foot.addWidget(self.tint)
        foot.addWidget(self.race)
        column.addLayout(foot)
        self.hide()

    def show_timings(self, timings: Timings) -> None:
        """Show the figures of a reply."""
        found = phases(timings)
        self.bar.show_phases(found)
        self._show_legend(found)
        self.facts.show_facts(receipt_facts(timings))
        self.why.setText(why_this_fast(timings))
        would_help = what_would_help(timings)
        self.help.setText(tr("What would help: {would_help}", would_help=would_help))
        self.help.setVisible(bool(would_help))
        self.tint.setVisible(timings.drafted_tokens > 0)

    def show_tint(self, is_on: bool, is_known: bool) -> None:
        """Show whether drafted words are tinted; of this reply they may not be known."""
        self.tint.blockSignals(True)
        self.tint.setChecked(is_on)
        self.tint.blockSignals(False)
        unknown = tr("This reply was written while it was off, so its drafted words are not known.")
        self.tint.setToolTip("" if is_known or not is_on else unknown)

    def _show_legend(self, found: Sequence[Phase]) -> None:
        while (item := self._legend.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for row, phase in enumerate(found):
            for column, label in enumerate((_Dot(phase.colour), *map(QLabel, _words(phase)))):
                label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
                label.setProperty("tone", "caption" if column in (1, 3) else "")
                label.setWordWrap(column == 3)  # the others are a word or two
                self._legend.addWidget(label, row, column)
                label.show()  # the layout would a moment later, and until then the card would be too low


def _words(phase: Phase) -> tuple[str, str, str]:
    # A line would also break behind the slash of a unit.
    return phase.name, milliseconds(phase.ms), phase.words.replace("/", "/\N{WORD JOINER}")


class _Dot(QLabel):
    """The colour of a phase, beside its name."""

    def __init__(self, colour: str) -> None:
        super().__init__()
        self._colour = colour
        self.setFixedWidth(_BAR)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(colours(), self._colour)))
        painter.drawEllipse(QRectF(0, (self.height() - _BAR) / 2, _BAR, _BAR))


class PhaseBar(QWidget):
    """Phases side by side, each as long as its share of the time."""

    def __init__(self) -> None:
        super().__init__()
        self._phases: Sequence[Phase] = ()
        self.setAccessibleName(tr("Where the time went"))
        self.setFixedHeight(scaled(_BAR))

    def show_phases(self, found: Sequence[Phase]) -> None:
        """Show other phases, or the same in another size."""
        self._phases = found
        self.setFixedHeight(scaled(_BAR))
        self.setAccessibleDescription(", ".join(f"{phase.name} {milliseconds(phase.ms)}" for phase in found))
        self.setToolTip(self.accessibleDescription())
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the shares."""
        total = sum(phase.ms for phase in self._phases)
        if total <= 0:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        round_ends = QPainterPath()
        round_ends.addRoundedRect(QRectF(self.rect()), self.height() / 2, self.height() / 2)
        painter.setClipPath(round_ends)
        lengths = [max(_LEAST, self.width() * phase.ms / total) if phase.ms > 0 else 0.0 for phase in self._phases]
        left, shrink = 0.0, self.width() / sum(lengths)
        for phase, length in zip(self._phases, lengths, strict=True):
            part = QRectF(left, 0, length * shrink, self.height())
            part = visual_rect(self.layoutDirection(), QRectF(self.rect()), part)
            painter.fillRect(part, QColor(getattr(colours(), phase.colour)))
            left += length * shrink
