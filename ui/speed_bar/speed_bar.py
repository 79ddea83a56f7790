"""A slim bar that is always in view: how fast the engine is, what bounds it, and what drafting brings."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLayout, QWidget

from core.snapshot import Snapshot
from ui.api import ServerState
from ui.speed_bar import faces
from ui.speed_bar.faces import Face
from ui.speed_bar.gauge import Gauge
from ui.text_size import scaled
from ui.theme import LINE, Palette, Space

HEIGHT = 36
_SIDE = Space.L  # where the icons of the pages above begin and end
_ROOMY = 700


class SpeedBar(QFrame):
    """Five gauges, fed with the server's states."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("speedBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Speed")
        self.setFixedHeight(HEIGHT)
        self.speed = Gauge("Tokens per second", Face("8,888", "tok/s prompt"))
        self.bandwidth = Gauge("Memory bandwidth", Face("888.8", "of 8,888 GB/s"))
        self.bound = Gauge("What sets the speed", Face("Overhead", "bound"))
        self.drafts = Gauge("Accepted drafts", Face("100%", "drafts · 8.8×"))
        self.requests = Gauge("Requests", Face("88", "active · 88 wait"))
        self._gauges = (self.speed, self.bandwidth, self.bound, self.drafts, self.requests)
        self._by_urgency = (self.speed, self.bandwidth, self.drafts, self.requests, self.bound)
        self._fastest: dict[str | None, float] = {}
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(_SIDE, Space.XS + 1, _SIDE, Space.XS + 2)
        self._row.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        for gauge in self._gauges:
            self._row.addWidget(gauge, 1)
        self.show_state(ServerState())

    def show_state(self, state: ServerState) -> None:
        """Show what a server's state says of its engine; one without a snapshot is idle."""
        snapshot = state.snapshot or Snapshot()
        fastest = max(self._fastest.get(state.model, 0.0), snapshot.decode_rate)
        self._fastest[state.model] = fastest
        shown = (
            faces.speed(snapshot, fastest),
            faces.bandwidth(snapshot),
            faces.bound(snapshot),
            faces.drafts(snapshot),
            faces.requests(snapshot, state.n_slots or 1),
        )
        for gauge, face in zip(self._gauges, shown, strict=True):
            gauge.show_face(face, snapshot.is_idle)

    def set_palette(self, palette: Palette) -> None:
        """Draw in other colours, or in another size."""
        for gauge in self._gauges:
            gauge.set_palette(palette)
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

    def _leave_out(self) -> None:
        between = Space.XL if self.width() >= _ROOMY else Space.L
        self._row.setSpacing(between)
        room = self.width() - 2 * _SIDE + between
        for gauge in self._by_urgency:
            room -= gauge.minimumSizeHint().width() + between
            gauge.setVisible(room >= 0)
