"""The list of chats: groups of days, marks, pages."""

from __future__ import annotations

from datetime import date, datetime

from PySide6.QtCore import Qt

from ui.chat.history.history_model import HEADING, RUNNING, Heading, HistoryModel, grouped
from ui.chat.history.history_panel import HistoryPanel
from ui.client.chat_records import ChatSummary

TODAY = date(2026, 3, 15)


def chat(number: int, *when: int) -> ChatSummary:
    return ChatSummary(number, f"Chat {number}", int(datetime(*when).timestamp() * 1000))


CHATS = [
    chat(1, 2026, 3, 15, 9), chat(2, 2026, 3, 15, 0), chat(3, 2026, 3, 14, 23, 59), chat(4, 2026, 3, 8),
    chat(5, 2026, 2, 20), chat(6, 2026, 1, 31), chat(7, 2026, 1, 1), chat(8, 2025, 12, 31),
]  # fmt: skip


def test_chats_are_grouped_by_day_then_by_month() -> None:
    rows = grouped(CHATS, TODAY)
    headings = [row.text for row in rows if isinstance(row, Heading)]
    assert headings == [
        "Today", "Yesterday", "Previous 7 days", "Previous 30 days", "January 2026", "December 2025",
    ]  # fmt: skip
    assert [row.id for row in rows if isinstance(row, ChatSummary)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_headings_cannot_be_chosen_and_chats_can_be_renamed(qtbot, qtmodeltester) -> None:
    model = HistoryModel()
    model.show(CHATS, TODAY)
    qtmodeltester.check(model)
    heading, first = model.index(0), model.index(1)
    assert heading.data(HEADING)
    assert heading.flags() == Qt.ItemFlag.NoItemFlags
    with qtbot.waitSignal(model.renamed) as renamed:
        assert model.setData(first, " New\nname ")
    assert renamed.args == [1, "New name"]
    assert not model.setData(first, "   ")
    assert first.data() == "New name"


def test_older_chats_are_added_below_without_moving_the_list(qtbot) -> None:
    model = HistoryModel()
    model.show(CHATS[:4], TODAY)
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.rowsInserted):
        model.show(CHATS, TODAY)
    assert model.n_chats == 8
    with qtbot.assertNotEmitted(model.modelReset):
        model.show(CHATS, TODAY)


def test_a_chat_at_work_is_marked(qtbot) -> None:
    model = HistoryModel()
    model.show(CHATS, TODAY)
    model.set_running({3})
    assert model.index(model.row_of(3)).data(RUNNING)
    assert not model.index(model.row_of(4)).data(RUNNING)
    assert model.row_of(99) == -1


def test_the_end_of_the_list_asks_for_more(qtbot) -> None:
    panel = HistoryPanel()
    qtbot.addWidget(panel)
    panel.resize(268, 500)
    panel.show()
    panel.show_chats([chat(n, 2026, 1, 1) for n in range(300)], "")
    bar = panel.list.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    with qtbot.waitSignal(panel.more_wanted) as wanted:
        bar.setValue(bar.maximum())
    assert wanted.args == [300]


def test_enter_opens_f2_renames_and_the_menu_offers_both(qtbot) -> None:
    panel = HistoryPanel()
    qtbot.addWidget(panel)
    panel.show()
    panel.show_chats(CHATS, "")
    panel.choose(3)
    index = panel.list.currentIndex()
    with qtbot.waitSignal(panel.opened) as opened:
        qtbot.keyClick(panel.list, Qt.Key.Key_Return)
    assert opened.args == [3]
    qtbot.keyClick(panel.list, Qt.Key.Key_F2)
    assert panel.list.state() == panel.list.State.EditingState
    menu = panel.menu_for(index)
    assert [action.text().split("\t")[0] for action in menu.actions()] == ["Open", "Rename", "Delete"]
    with qtbot.waitSignal(panel.deleted) as deleted:
        menu.actions()[2].trigger()
    assert deleted.args == [3]


def test_an_empty_list_says_what_will_be_there(qtbot) -> None:
    panel = HistoryPanel()
    qtbot.addWidget(panel)
    panel.show_chats([], "")
    assert "listed here" in panel.nothing.text()
    panel.show_chats([], "fox")
    assert "fox" in panel.nothing.text()
