"""A Qt binding that loses a reference to None with each void call ends the process after some thousand of them."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QLabel, QProgressBar, QTextBrowser

N_CALLS = 3_000


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal there")
def test_void_calls_of_qt_keep_their_hands_off_none(qtbot) -> None:
    label, bar, text, timer = QLabel(), QProgressBar(), QTextBrowser(), QTimer()
    for widget in (label, bar, text):
        qtbot.addWidget(widget)
    cursor = QTextCursor(text.document())
    before = sys.getrefcount(None)
    for number in range(N_CALLS):
        label.setText("x")
        bar.setValue(number % 100)
        cursor.insertText("y")
        timer.setInterval(5)
        label.update()
    assert abs(sys.getrefcount(None) - before) < N_CALLS / 10
