from __future__ import annotations

import sys

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLabel

N_CALLS = 3_000
SLACK = 200


def test_calls_that_return_nothing_do_not_use_up_none(qtbot):
    """A release of PySide6 loses one reference with each such call; below Python 3.12 that ends in an abort."""
    label, item = QLabel(), QObject()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for number in range(N_CALLS):
        label.setText(str(number))
        item.setObjectName(str(number))
    assert abs(sys.getrefcount(None) - before) < SLACK
