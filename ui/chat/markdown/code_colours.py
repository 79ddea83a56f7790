"""Colours the code in documents: lexed on a thread of its own, applied in small steps."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import shiboken6
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QWidget

from ui.chat.markdown.code_spans import ColourSpan, code_spans
from ui.platform.gui_thread import GuiThread
from ui.theme.colours import colours
from ui.theme.tokens import Palette

STEP_SECONDS = 0.004


class CodeColours(QObject):
    """One queue of code to colour for all documents of the window."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._gui = GuiThread(self)
        self._lexing = ThreadPoolExecutor(1, thread_name_prefix="code colours")
        self._waiting: dict[int, _Job] = {}
        self._last_number = 0
        self._jobs: deque[_Job] = deque()
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._step)

    def warm_up(self) -> None:
        """Import what colouring needs, before it is needed."""
        self._lexing.submit(code_spans, "x = 1", "python")

    def colour(self, view: QWidget, code: QTextCursor, language: str) -> None:
        """Colour the selected text of a document that ``view`` shows."""
        if not language or not code.hasSelection() or not self._gui.is_open:
            return
        number = self._last_number = self._last_number + 1
        # The other thread only gets the number: cursors must not be given up, and so destroyed, over there.
        self._waiting[number] = _Job(view, code)

        def lexed(future: Future[list[ColourSpan]]) -> None:
            spans = [] if future.cancelled() or future.exception() is not None else future.result()
            self._gui.post(lambda: self._begin(number, spans))

        self._lexing.submit(code_spans, code.selection().toPlainText(), language.lower()).add_done_callback(lexed)

    def close(self) -> None:
        """Stop; what is not coloured yet stays plain."""
        self._gui.close()
        self._jobs.clear()
        self._waiting.clear()
        self._lexing.shutdown(wait=False, cancel_futures=True)

    def _begin(self, number: int, spans: list[ColourSpan]) -> None:
        job = self._waiting.pop(number)
        job.spans.extend(spans)
        if job.spans and job.is_still_right:
            self._jobs.append(job)
            self._timer.start()

    def _step(self) -> None:
        if not self._jobs:
            self._timer.stop()
            return
        job = self._jobs[0]
        if not job.is_still_right or not job.apply(colours(), time.perf_counter() + STEP_SECONDS):
            self._jobs.popleft()


class _Job:
    """Spans that wait to be applied to one piece of code."""

    def __init__(self, view: QWidget, code: QTextCursor) -> None:
        self._view = view
        self._code = code
        self._length = code.selectionEnd() - code.selectionStart()
        self.spans: deque[ColourSpan] = deque()

    @property
    def is_still_right(self) -> bool:
        """True while the document is there and the code in it was not written again."""
        return shiboken6.isValid(self._view) and self._code.selectionEnd() - self._code.selectionStart() == self._length

    def apply(self, palette: Palette, until: float) -> bool:
        """Colour spans until the time is over; return whether some are left."""
        cursor = QTextCursor(self._code)
        begin = self._code.selectionStart()
        cursor.beginEditBlock()
        form = QTextCharFormat()
        while self.spans and time.perf_counter() < until:
            span = self.spans.popleft()
            form.setForeground(QColor(getattr(palette, span.colour)))
            cursor.setPosition(begin + span.start)
            cursor.setPosition(begin + span.start + span.length, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(form)
        cursor.endEditBlock()
        return bool(self.spans)
