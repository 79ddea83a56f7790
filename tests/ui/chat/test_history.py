"""The list of chats: groups of days, marks, pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QInputDialog, QLineEdit, QMenu

from tools.stand_ins.dragging import place
from ui.chat.history.history_model import CHAT_ID, FOLDER, HEADING, RUNNING, SNIPPET, Heading, HistoryModel, grouped
from ui.chat.history.history_panel import LOOK_MS, HistoryPanel
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


def test_chats_are_listed_anew_when_another_day_has_begun(qtbot, panel: HistoryPanel) -> None:
    look = next(timer for timer in panel.findChildren(QTimer) if timer.interval() == LOOK_MS)
    assert look.isActive()
    panel.model.show(CHATS)
    with qtbot.assertNotEmitted(panel.searched):
        look.timeout.emit()
    panel.model.show(CHATS, TODAY)
    with qtbot.waitSignal(panel.searched) as listed:
        look.timeout.emit()
    assert listed.args == [""]


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
    model.set_running({3})
    assert model.index(model.row_of(3)).data(RUNNING)
    assert not model.index(model.row_of(4)).data(RUNNING)
    assert model.row_of(99) == -1


@pytest.fixture
def panel(qtbot) -> HistoryPanel:
    made = HistoryPanel()
    qtbot.addWidget(made)
    made.show()
    return made


def test_the_end_of_the_list_asks_for_more(qtbot, panel: HistoryPanel) -> None:
    panel.resize(268, 500)
    panel.show_chats([chat(n, 2026, 1, 1) for n in range(300)], "")
    bar = panel.list.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    with qtbot.waitSignal(panel.more_wanted) as wanted:
        bar.setValue(bar.maximum())
    assert wanted.args == [300]


def test_enter_opens_f2_renames_and_the_menu_offers_both(qtbot, panel: HistoryPanel) -> None:
    panel.show_chats(CHATS, "")
    panel.choose(3)
    index = panel.list.currentIndex()
    with qtbot.waitSignal(panel.opened) as opened:
        qtbot.keyClick(panel.list, Qt.Key.Key_Return)
    assert opened.args == [3]
    qtbot.keyClick(panel.list, Qt.Key.Key_F2)
    assert panel.list.state() == panel.list.State.EditingState
    menu = panel.menu_for(index)
    assert [action.text().split("\t")[0] for action in menu.actions() if not action.isSeparator()] == [
        "Open", "Open beside", "Rename", "Pin", "Move to folder", "Put into the archive", "Export…", "Delete",
    ]  # fmt: skip
    with qtbot.waitSignal(panel.deleted) as deleted:
        menu.actions()[-1].trigger()
    assert deleted.args == [3]


def test_a_menu_for_another_chat_leaves_the_mark_on_the_open_one(qtbot, panel: HistoryPanel) -> None:
    panel.resize(268, 500)
    panel.show_chats(CHATS, "")
    panel.choose(1)
    other = panel.model.index(panel.model.row_of(3))
    qtbot.mousePress(panel.list.viewport(), Qt.MouseButton.RightButton, pos=panel.list.visualRect(other).center())
    assert panel.list.currentIndex().data(CHAT_ID) == 1, "it is the menu that marks"
    panel.list.customContextMenuRequested.emit(panel.list.visualRect(other).center())
    assert panel.list.currentIndex() == other, "what the menu is about"
    panel.findChild(QMenu).close()
    qtbot.waitUntil(lambda: panel.list.currentIndex().data(CHAT_ID) == 1)
    panel.list.customContextMenuRequested.emit(panel.list.visualRect(other).center())
    (menu,) = (one for one in panel.findChildren(QMenu) if one.isVisible() and one.parent() is panel)
    menu.actions()[2].trigger()  # rename
    menu.close()
    qtbot.wait(20)
    assert panel.list.state() == panel.list.State.EditingState
    assert panel.list.currentIndex() == other


def test_who_walks_through_the_list_goes_on_where_a_chat_was_deleted(qtbot, panel: HistoryPanel) -> None:
    panel.show_chats(CHATS, "")
    panel.choose(2)
    panel.list.setFocus()
    assert panel.is_walked
    for left, current in (([*CHATS[:1], *CHATS[2:]], 3), ([CHATS[3], *CHATS[:1], *CHATS[2:3]], 3), (CHATS[:1], 1)):
        panel.show_chats(left, "")
        assert panel.list.currentIndex().data(CHAT_ID) == current
    qtbot.keyClick(panel.list, Qt.Key.Key_F2)
    panel.show_chats(CHATS[1:], "")
    assert panel.list.state() == panel.list.State.EditingState, "the name is not half written"
    with qtbot.waitSignal(panel.searched):
        qtbot.keyClick(panel.list.viewport().findChild(QLineEdit), Qt.Key.Key_Escape)
    panel.show_chats(CHATS, "")
    assert panel.model.n_chats == len(CHATS)
    panel.search.setFocus()
    assert not panel.is_walked


SORTED = [
    replace(CHATS[0], folder="work"), CHATS[1], replace(CHATS[2], folder="Home"), replace(CHATS[3], is_pinned=True),
    replace(CHATS[4], folder="work"),
]  # fmt: skip


def lines(model: HistoryModel) -> list[str]:
    return [str(model.index(row).data()) for row in range(model.rowCount())]


def test_pinned_chats_and_folders_stand_above_the_days() -> None:
    model = HistoryModel()
    model.show(SORTED, TODAY)
    whole = ["Pinned", "Chat 4", "Home", "Chat 3", "work", "Chat 1", "Chat 5", "Today", "Chat 2"]
    assert lines(model) == whole
    assert model.folders == ["Home", "work"]
    model.open_folder("work", False)
    assert lines(model) == [line for line in whole if line not in ("Chat 1", "Chat 5")]
    model.open_folder("work", True)
    assert lines(model) == whole


def test_folders_are_opened_closed_and_renamed_by_the_keyboard(qtbot, panel: HistoryPanel) -> None:
    panel.show_chats(SORTED, "")
    row = lines(panel.model).index("work")
    panel.list.setCurrentIndex(panel.model.index(row))
    qtbot.keyClick(panel.list, Qt.Key.Key_Left)
    assert "Chat 5" not in lines(panel.model)
    assert panel.list.currentIndex().data() == "work"
    qtbot.keyClick(panel.list, Qt.Key.Key_Return)
    assert "Chat 5" in lines(panel.model)
    with qtbot.waitSignal(panel.folder_renamed) as renamed:
        panel.model.setData(panel.list.currentIndex(), "play")
    assert renamed.args == ["work", "play"]
    remove = panel.menu_for(panel.list.currentIndex()).actions()[1]
    with qtbot.waitSignal(panel.folder_renamed) as renamed:
        remove.trigger()
    assert renamed.args == ["work", ""]


def test_a_chat_is_pinned_archived_and_moved_by_its_menu(qtbot, panel: HistoryPanel) -> None:
    panel.show_chats(SORTED, "")
    panel.choose(1)
    panel.list.customContextMenuRequested.emit(QPoint(9, panel.list.height() + 900))
    assert not panel.findChildren(QMenu), "below the chats nothing is meant"
    menu = panel.menu_for(panel.list.currentIndex())
    actions = {action.text(): action for action in menu.actions()}
    with qtbot.waitSignal(panel.pinned) as pinned, qtbot.waitSignal(panel.put_away) as put_away:
        actions["Pin"].trigger()
        actions["Put into the archive"].trigger()
    assert (pinned.args, put_away.args) == ([1, True], [1, True])
    folders = next(found for found in menu.findChildren(QMenu) if found.title() == "Move to folder")
    assert [action.text() for action in folders.actions()] == ["Home", "work", "", "New folder…", "Out of its folder"]
    with qtbot.waitSignal(panel.moved) as moved:
        folders.actions()[0].trigger()
    assert moved.args == [1, "Home"]
    folders.actions()[3].trigger()
    dialog = panel.findChild(QInputDialog)
    assert dialog.okButtonText() == "Create"
    assert dialog.findChild(QLineEdit).width() > 300, "a name is seen whole"
    dialog.setTextValue("  A  new one ")
    with qtbot.waitSignal(panel.moved) as moved:
        dialog.accept()
    assert moved.args == [1, "A new one"]
    panel.choose(4)
    (menu,) = (one for one in panel.menu_for(panel.list.currentIndex()).findChildren(QMenu))
    with qtbot.waitSignal(panel.pinned) as pinned, qtbot.waitSignal(panel.moved) as moved:
        menu.actions()[0].trigger()
    assert (pinned.args, moved.args) == ([4, False], [4, "Home"]), "pinned it would not be seen in the folder"


def test_the_keyboard_goes_from_the_search_to_what_it_finds(qtbot, panel: HistoryPanel) -> None:
    panel.show_chats(CHATS, "")
    qtbot.keyClicks(panel.search, "Chat 3")
    with qtbot.waitSignal(panel.searched) as searched, qtbot.assertNotEmitted(panel.opened):
        qtbot.keyClick(panel.search, Qt.Key.Key_Return)
    assert searched.args == ["Chat 3"]
    with qtbot.assertNotEmitted(panel.opened):
        panel.show_chats(CHATS[:2], "Chat")  # of an earlier letter
    with qtbot.waitSignal(panel.opened) as opened:
        panel.show_chats(CHATS[2:4], "Chat 3")
    assert opened.args == [3]
    qtbot.keyClick(panel.search, Qt.Key.Key_Down)
    assert panel.list.currentIndex().data(CHAT_ID) == 3
    qtbot.keyClick(panel.search, Qt.Key.Key_Escape)
    assert panel.search.text() == ""


def test_what_is_found_in_the_archive_is_marked(qtbot, panel: HistoryPanel) -> None:
    panel.show_chats([replace(CHATS[0], is_archived=True, snippet="a fox"), CHATS[1]], "fox")
    assert panel.model.index(0).data(SNIPPET) == "Archived · a fox"
    with qtbot.waitSignal(panel.archive_wanted) as wanted:
        panel.archive.click()
    assert wanted.args == [True]
    panel.show_chats([], "")
    assert panel.nothing.text() == "The archive is empty."
    panel.show_chats([], "fox")
    assert "fox" in panel.nothing.text()


def test_a_long_history_is_shown_without_its_chats_in_closed_folders(qtbot) -> None:
    model = HistoryModel()
    model.closed = frozenset({"old"})
    model.show([replace(chat(n, 2026, 1, 1), folder="old") for n in range(10_000)], TODAY)
    assert model.rowCount() == 1
    assert model.index(0).data(HEADING).n_chats == 10_000
    assert model.index(0).data(CHAT_ID) is None


def drag(panel: HistoryPanel, chat_id: int, to: int) -> bool:
    """Drag a chat to a row, -1 for the room below all of them, as the system does; return whether it is taken."""
    model, view = panel.model, panel.list
    data = model.mimeData([model.index(model.row_of(chat_id))])
    at = view.visualRect(model.index(to)).center() if to >= 0 else view.viewport().rect().bottomLeft() - QPoint(-9, 9)
    move, left, none = Qt.DropAction.MoveAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    moves = QDragMoveEvent(place(at), move, data, left, none)
    view.dragMoveEvent(moves)
    view.grab()  # with the line around what is below
    if moves.isAccepted():
        view.dropEvent(QDropEvent(QPointF(at), move, data, left, none))
    return moves.isAccepted()


def test_a_chat_is_dragged_into_a_folder_and_out(qtbot, panel: HistoryPanel) -> None:
    panel.resize(280, 700)
    chats = [replace(CHATS[0], is_pinned=True), replace(CHATS[1], folder="Work"), *CHATS[2:4]]
    panel.show_chats(chats, "")
    moved, pinned = [], []
    panel.moved.connect(lambda *what: moved.append(what))
    panel.pinned.connect(lambda *what: pinned.append(what))
    model = panel.model
    work = next(row for row in range(model.rowCount()) if model.index(row).data(FOLDER) == "Work")
    assert model.flags(model.index(model.row_of(3))) & Qt.ItemFlag.ItemIsDragEnabled
    assert not model.flags(model.index(work)) & Qt.ItemFlag.ItemIsDragEnabled
    assert drag(panel, 3, work)
    assert drag(panel, 4, model.row_of(2))  # a chat of the folder stands for it
    assert drag(panel, 2, model.row_of(3))
    assert drag(panel, 2, -1)
    assert moved == [(3, "Work"), (4, "Work"), (2, ""), (2, "")]
    assert not pinned
    assert drag(panel, 2, work)  # where it is already
    assert not drag(panel, 3, model.row_of(1))  # what is pinned is no folder
    assert len(moved) == 4
    assert drag(panel, 1, work)
    assert (moved[4:], pinned) == ([(1, "Work")], [(1, False)])
    panel.show_chats(CHATS, "word")
    assert not panel.model.flags(panel.model.index(0)) & Qt.ItemFlag.ItemIsDragEnabled
    assert not drag(panel, 3, 1), "what a search found is not dragged"
