"""How much of the model's context the chat takes, as a small bar; a click offers what makes room."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from models.formatting.figures import count
from ui.chat.context_use import ContextUse
from ui.language import tr
from ui.theme.colours import colours
from ui.theme.layouts import visual_rect
from ui.theme.text_size import scaled
from ui.theme.tokens import Corner, Space, Type
from ui.widgets.elided_label import draw_line

_TRACK = 56  # pixels of the bar beside its words
_LINE = 4


class ContextBar(QAbstractButton):
    """Shows what is used, what the written message adds, and what is free; hidden where the context is not known."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.use = ContextUse()
        self.setObjectName("contextBar")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_use(self, use: ContextUse) -> None:
        """Show another use of the context."""
        self.use = use
        about = tr("About ") if use.is_estimate else ""
        lines = [
            tr(
                "{about}{n_used:,} tokens of this chat, {n_draft:,} of the message being written, "
                "{n_free:,} free of {n_ctx:,}.",
                about=about,
                n_used=use.n_used,
                n_draft=use.n_draft,
                n_free=use.n_free,
                n_ctx=use.n_ctx,
            ),
            tr("It is nearly full: click for what makes room.")
            if use.is_nearly_full
            else tr("Click for what makes room."),
        ]
        self.setToolTip("\n".join(lines))
        self.setAccessibleDescription(lines[0])
        words = tr("{n_used} of {n_ctx} tokens", n_used=count(use.n_used + use.n_draft), n_ctx=count(use.n_ctx))
        self.setText(words)
        self.setAccessibleName(tr("Context: {words}", words=words))
        self.setVisible(use.n_ctx > 0)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Room for the bar and its words."""
        font = QFont(self.font())
        font.setPixelSize(scaled(Type.CAPTION))  # hidden, it keeps its line too, and is not styled anew
        metrics = QFontMetrics(font)
        words = metrics.horizontalAdvance(self.text())
        return QSize(scaled(_TRACK) + Space.S + words + 2 * Space.XS, metrics.height() + Space.XS)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the shares and the words."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette, use, direction, whole = colours(), self.use, self.layoutDirection(), QRectF(self.rect())
        track = QRectF(Space.XS, (self.height() - _LINE) / 2, scaled(_TRACK), _LINE)
        rounded = QPainterPath()
        rounded.addRoundedRect(visual_rect(direction, whole, track), _LINE / 2, _LINE / 2)
        painter.setClipPath(rounded)
        painter.fillRect(visual_rect(direction, whole, track), QColor(palette.pressed))
        left, is_warm = track.left(), use.is_nearly_full
        shades = (palette.warning, palette.warning) if is_warm else (palette.accent, palette.muted)
        for n_tokens, shade in zip((use.n_used, use.n_draft), shades, strict=True):
            width = track.width() * min(1.0, n_tokens / max(use.n_ctx, 1))
            part = QRectF(left, track.top(), width, _LINE)
            painter.fillRect(visual_rect(direction, whole, part), QColor(shade))
            left += width
        painter.setClipping(False)
        painter.setPen(QColor(palette.warning if is_warm else palette.text if self.underMouse() else palette.muted))
        draw_line(
            painter, visual_rect(direction, whole, whole.adjusted(int(track.right()) + Space.S, 0, 0, 0)), self.text()
        )
        if self.hasFocus():
            painter.setPen(QPen(QColor(palette.focus), 1))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), Corner.S, Corner.S)
