"""Widths of table columns."""

from __future__ import annotations

import pytest

from ui.chat.markdown.table_fit import ColumnNeed, column_widths


@pytest.mark.parametrize(
    ("needs", "room", "widths"),
    [
        ([ColumnNeed(100, 40), ColumnNeed(60, 60)], 130, [70, 60]),  # what is left goes where lines are longer
        ([ColumnNeed(100, 40), ColumnNeed(80, 60)], 100, [40, 60]),  # just the words
        ([ColumnNeed(100, 30), ColumnNeed(400, 300)], 100, [30, 70]),  # the short word stays whole
        ([ColumnNeed(300, 300), ColumnNeed(400, 300), ColumnNeed(9, 9)], 100, [45, 45, 9]),
        ([ColumnNeed(50, 50)], 10, [10]),
        ([ColumnNeed(50, 50)] * 3, 0, [1, 1, 1]),
        ([ColumnNeed(50, 50)], 90, [50]),
    ],
)
def test_words_stay_whole_where_there_is_room(needs: list[ColumnNeed], room: int, widths: list[int]) -> None:
    assert column_widths(needs, room) == widths
