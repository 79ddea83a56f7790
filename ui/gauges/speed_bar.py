"""A slim bar that is always in view: how fast the engine is, what bounds it, and what drafting brings."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLayout

from core.values.messages import Snapshot
from models.formatting.figures import percent
from ui.client.api import ServerState
from ui.gauges import faces
from ui.gauges.faces import GaugeFace
from ui.gauges.gauge import Gauge
from ui.gauges.sparkline import Sparkline
from ui.language import tr
from ui.theme.colours import Dressed
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import LINE, Space
from ui.widgets.row_list import paint_ring

HEIGHT = 36
SHOW_MS = 500  # what changes more often cannot be read
_SIDE = Space.L  # where the icons of the pages above begin and end
_ROOMY = 700
NOW, LAST_REPLY, IDLE = tr("Now"), tr("Last reply"), tr("Idle")


class SpeedBar(Dressed, QFrame):
    """Five gauges and the line of the last minute, fed with the server's states.

    An idle engine's gauges show the last reply, grey and marked as such.
    """

    why_wanted = Signal()  # what sets the speed is to be explained

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("speedBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(tr("Speed"))
        self.setFixedHeight(HEIGHT)
        self.speed = Gauge(tr("Tokens per second"), GaugeFace("8,888", tr("tok/s prompt")))
        self.bandwidth = Gauge(tr("Memory bandwidth"), GaugeFace("888.8", tr("of 8,888 GB/s")))
        self.limit = Gauge(
            tr("What sets the speed"), GaugeFace(max(faces.LIMITS.values(), key=len), "", lead=tr("limited by"))
        )
        self.drafts = Gauge(tr("Accepted drafts"), GaugeFace(percent(1), tr("drafts · 8.8×")))
        self.requests = Gauge(tr("Requests"), GaugeFace("88", tr("active · 88 wait")))
        self.limit.set_clickable()
        self.limit.installEventFilter(self)
        self.limit.clicked.connect(self.why_wanted)
        self.minute = Sparkline()
        self.when = QLabel()
        self.when.setProperty("tone", "caption")
        self.when.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.when.setContentsMargins(0, 1, 0, 0)  # on the line of the figures, whose letters are larger
        self.gauges = (self.speed, self.bandwidth, self.limit, self.drafts, self.requests)
        self._by_urgency = (self.speed, self.bandwidth, self.drafts, self.limit, self.minute, self.requests)
        self._fastest: dict[str | None, float] = {}
        self._state, self._rate = ServerState(), 0.0  # the latest, and the highest rate since what is shown
        self._soon = QTimer(self, singleShot=True, interval=SHOW_MS)
        self._soon.timeout.connect(self._show)
        self._row = fill(QHBoxLayout(self), margins=(_SIDE, Space.XS + 1, _SIDE, Space.XS + 2))
        self._row.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        self._row.addWidget(self.when)
        for gauge in self.gauges:
            self._row.addWidget(gauge, 1)
            if gauge is self.speed:
                self._row.addWidget(self.minute)
        self.show_state(ServerState(), None)

    def show_state(self, state: ServerState, seen: Snapshot | None) -> None:
        """Show what a server's state says of its engine; without a snapshot it has done nothing yet.

        ``seen`` is what ran since the last time.
        """
        before, self._state = self._state, state
        self._rate = max(self._rate, seen.decode_rate if seen is not None else 0.0)
        if before.model != state.model or not (_is_working(before) and _is_working(state)):
            self._show()
        elif not self._soon.isActive():
            self._soon.start()

    def _show(self) -> None:
        self._soon.stop()
        state, now = self._state, self._state.snapshot or Snapshot()
        last = state.last_reply if now.is_idle else None
        shown = last or now
        fastest = max(self._fastest.get(state.model, 0.0), shown.decode_rate)
        self._fastest[state.model] = fastest
        self.minute.add(self._rate)
        self._rate = 0.0
        idle = IDLE if state.phase == "ready" else ""
        self.when.setText(LAST_REPLY if last is not None else idle if now.is_idle else NOW)
        faces_shown = (
            faces.speed(shown, fastest, last is not None),
            faces.bandwidth(shown),
            faces.limited_by(shown),
            faces.drafts(shown, last is not None),
            faces.requests(now, state.n_slots or 1),
        )
        for gauge, face in zip(self.gauges, faces_shown, strict=True):
            gauge.show_face(face, now.is_idle)

    def dress(self) -> None:
        """Leave room for the text."""
        self.when.ensurePolished()
        # Room for the widest words, so that nothing moves when work begins or ends.
        width = max(self.when.fontMetrics().horizontalAdvance(words) for words in (NOW, LAST_REPLY, IDLE))
        self.when.setFixedSize(width, self.speed.sizeHint().height())
        self.setFixedHeight(self._height)
        self._leave_out()

    def minimumSizeHint(self) -> QSize:
        """Ask for no width: gauges that have no room are left out."""
        return QSize(0, self._height)

    @property
    def _height(self) -> int:
        margins = self._row.contentsMargins()
        # A font may have taller lines than most. Above all there is the line to the page.
        return max(scaled(HEIGHT), self.speed.sizeHint().height() + margins.top() + margins.bottom() + LINE)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out what has no room."""
        super().resizeEvent(event)
        self._leave_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Show which gauge has the keyboard, around it: its words begin at its edge."""
        super().paintEvent(event)
        for gauge in self.gauges:
            if gauge.hasFocus() and gauge.has_ring:
                painter = QPainter(self)
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                paint_ring(painter, gauge.geometry().adjusted(-Space.S, -Space.XS, Space.S, Space.XS))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Paint anew where the keyboard comes to a gauge or leaves it."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return super().eventFilter(watched, event)

    def _leave_out(self) -> None:
        between = Space.XL if self.width() >= _ROOMY else Space.L
        self._row.setSpacing(between)
        room = self.width() - 2 * _SIDE - self.when.width()
        for gauge in self._by_urgency:
            room -= gauge.minimumSizeHint().width() + between
            gauge.setVisible(room >= 0)


def _is_working(state: ServerState) -> bool:
    return state.snapshot is not None and not state.snapshot.is_idle
