"""A window that is read from right to left: what Qt mirrors by itself and what is painted agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QComboBox, QPushButton, QWidget

from core.values.messages import Snapshot
from tests.support.chat_window import ask
from ui.chat.context_bar import ContextBar
from ui.chat.context_use import ContextUse
from ui.chat.history.history_panel import HistoryPanel
from ui.chat.messages.receipt_view import PhaseBar
from ui.chat.messages.receipts import Phase
from ui.client.chat_records import ChatSummary
from ui.gauges import faces
from ui.gauges.gauge import Gauge
from ui.speed.bars import Bar, BarList, BarPart, StackedBar
from ui.theme.appearance import Appearance
from ui.theme.icons import pixmap
from ui.theme.tokens import LIGHT
from ui.widgets.elided_label import direction_of
from ui.widgets.fields import ChoiceField
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.growing_edit import GrowingEdit
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import PageTabs, open_menu
from ui.widgets.row_list import ListRow, RowList
from ui.window.main_window import MainWindow
from ui.window.tab_order import in_reading_order


@pytest.fixture
def mirrored(qapp: QApplication) -> Iterator[None]:
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    yield
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def columns(image: QImage, colour: str) -> tuple[int, int]:
    """The first and the last column with this very colour."""
    wanted = QColor(colour).rgb()
    found = [x for x in range(image.width()) for y in range(image.height()) if image.pixel(x, y) == wanted]
    return min(found), max(found)


def seen(widget: QWidget, direction: Qt.LayoutDirection) -> QImage:
    widget.setLayoutDirection(direction)
    return widget.grab().toImage()


def assert_is_mirrored(widget: QWidget, *colours: str) -> None:
    """What has these colours stands as far from one side as it stands from the other side otherwise."""
    usual = seen(widget, Qt.LayoutDirection.LeftToRight)
    turned = seen(widget, Qt.LayoutDirection.RightToLeft)
    for colour in colours:
        first, last = columns(usual, colour)
        assert usual.width() - 1 - first > last + 4 or first > usual.width() - 1 - last + 4, "it shows a side"
        assert columns(turned, colour) == pytest.approx((usual.width() - 1 - last, usual.width() - 1 - first), abs=1)


def test_gauges_and_bars_begin_where_lines_begin(qtbot) -> None:
    gauge = Gauge("Speed", faces.GaugeFace("888", "tok/s"))
    gauge.show_face(faces.speed(Snapshot(is_idle=False, decode_rate=20.0), 80.0), is_idle=False)
    host = QWidget()
    qtbot.addWidget(host)
    context = ContextBar(host)
    context.show_use(ContextUse(n_used=300, n_draft=0, n_ctx=1_000))
    times = PhaseBar()
    times.show_phases((Phase("Prompt", 20.0, "selection"), Phase("Written", 80.0, "accent")))
    memory = StackedBar("Memory")
    memory.show_parts((BarPart("Weights", 3.0, "3 GB", "accent"), BarPart("Free", 7.0, "7 GB", "pressed")))
    depths = BarList("Depths")
    depths.setParent(host)
    depths.show_bars((Bar("Token 1", 0.3, "30% of 40"),))
    for widget, colour in (
        (gauge, LIGHT.accent),
        (context, LIGHT.accent),
        (times, LIGHT.accent),
        (memory, LIGHT.accent),
        (depths, LIGHT.accent),
    ):
        qtbot.addWidget(widget)
        widget.resize(300, widget.sizeHint().height())
        assert_is_mirrored(widget, colour)


def test_the_words_of_a_gauge_are_read_in_their_own_direction(qtbot) -> None:
    face = faces.GaugeFace("–", "", n_segments=3, lead="limited by")
    gauge = Gauge("What sets the speed", face)
    gauge.show_face(face, is_idle=True)
    qtbot.addWidget(gauge)
    gauge.resize(300, gauge.sizeHint().height())
    usual, turned = (seen(gauge, way) for way in (Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft))
    first, last = columns(usual, LIGHT.muted)
    width, height = last + 1 - first, usual.height() - 4  # without the line
    at, _ = columns(turned, LIGHT.muted)
    assert turned.copy(at, 0, width, height) == usual.copy(first, 0, width, height)
    assert at + width > usual.width() - 4


def test_rows_of_lists_are_mirrored(qtbot) -> None:
    models, chats = RowList("Models"), HistoryPanel()
    models.show_rows([ListRow("a", "Ember", "8 MB", badge="toy")])
    chats.show_chats([ChatSummary(1, "A fox", 0)], "")
    chats.model.set_running({1})
    for widget, colour in ((models, LIGHT.warning_soft), (chats.list, LIGHT.accent)):
        qtbot.addWidget(widget)
        widget.resize(260, 200)
        assert_is_mirrored(widget, colour)


def test_the_figure_of_a_row_stays_near_its_name_in_a_wide_window(qtbot) -> None:
    models = RowList("Models")
    qtbot.addWidget(models)
    models.show_rows([ListRow("a", "Ember", "8 MB", right="69 tok/s", badge="toy")])
    models.resize(2400, 200)
    assert columns(seen(models, Qt.LayoutDirection.LeftToRight), LIGHT.text)[1] < 800
    assert columns(seen(models, Qt.LayoutDirection.RightToLeft), LIGHT.text)[0] > 2400 - 800
    assert_is_mirrored(models, LIGHT.warning_soft)


def test_a_text_is_read_in_its_own_direction() -> None:
    from_left, from_right = Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft
    assert [direction_of(text) for text in ("Ember (toy)", "שלום!", "7. مرحبا", "12 %", "")] == [
        from_left, from_right, from_right, from_left, from_left,
    ]  # fmt: skip
    mixed = ("مرحبا is how one says hello in Arabic", "Slipstream: מה זה", "שלום Ember", "Ember שלום")
    assert [direction_of(text) for text in mixed] == [from_left, from_right, from_right, from_left]
    assert direction_of("412 tok/s · אסימון", from_right) == from_right
    assert direction_of("412 tok/s · token", from_right) == from_left


def test_arrows_stand_and_point_where_lines_end(qtbot, mirrored: None, appearance: Appearance) -> None:
    points_left = pixmap("right", LIGHT.text, 24, 1.0).toImage()
    assert points_left == pixmap("left", LIGHT.text, 24, 1.0).toImage().flipped(Qt.Orientation.Horizontal)
    field = ChoiceField("Model")
    qtbot.addWidget(field)
    field.addItem("Ember")
    field.resize(200, 32)
    picture = field.grab(QRect(8, 4, 14, 24)).toImage()
    assert {picture.pixel(x, y) for x in range(14) for y in range(24)} > {picture.pixel(0, 0)}, "the arrow"
    inner = field.style().subControlRect(
        field.style().ComplexControl.CC_ComboBox, option_of(field), field.style().SubControl.SC_ComboBoxEditField, field
    )
    assert inner.right() > 180


def option_of(field: QComboBox):
    from PySide6.QtWidgets import QStyleOptionComboBox

    option = QStyleOptionComboBox()
    field.initStyleOption(option)
    return option


def test_margins_and_rows_that_fold_are_mirrored(qtbot, mirrored: None) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    margins = PageTabs(["One", "Two"], page).row.contentsMargins()
    assert margins.right() > margins.left()
    holder = QWidget()
    qtbot.addWidget(holder)
    flow = FlowLayout(holder, spacing=4)
    first, second = QPushButton("First"), QPushButton("Second")
    flow.addWidget(first)
    flow.addWidget(second)
    flow.setGeometry(QRect(0, 0, 300, 40))
    assert first.geometry().right() == 299
    assert second.geometry().right() == first.geometry().left() - 5
    copy = TextButton("Copy", parent=page)
    copy.adjustSize()
    copy.move(10, 0)
    copy.say("Copied to the clipboard")
    assert copy.x() == 10, "its end stays"


def test_the_window_is_mirrored(qtbot, mirrored: None, window: MainWindow) -> None:
    window.resize(780, 700)
    page = window.page
    qtbot.waitUntil(lambda: window.rail.geometry().left() > 700)
    for button in (page.picker.button, page.composer.speed):
        assert button.layoutDirection() == Qt.LayoutDirection.LeftToRight, "the arrow is behind the words"
    menu, button = window.chats.history.more_menu(), page.composer.attach
    open_menu(menu, button, is_above=True)
    begins = button.mapToGlobal(button.rect().topRight()).x()
    assert menu.geometry().right() == pytest.approx(begins, abs=1)
    menu.close()
    page.composer.speed.open()
    card = page.composer.speed.card
    assert card.geometry().left() == pytest.approx(page.composer.speed.mapToGlobal(QPoint(0, 0)).x(), abs=4)
    card.close()
    order = list(in_reading_order(page.composer))
    assert [one.x() for one in order if one.parentWidget() is page.composer] == sorted(
        (one.x() for one in order if one.parentWidget() is page.composer), reverse=True
    )


def test_the_arrow_keys_open_a_folder_towards_where_lines_end(qtbot, mirrored: None) -> None:
    panel = HistoryPanel()
    qtbot.addWidget(panel)
    panel.show()
    panel.show_chats([ChatSummary(1, "A fox", 0, folder="Animals")], "")
    panel.list.setCurrentIndex(panel.model.index(0))
    qtbot.keyClick(panel.list, Qt.Key.Key_Right)
    assert panel.model.rowCount() == 1
    qtbot.keyClick(panel.list, Qt.Key.Key_Left)
    assert panel.model.rowCount() == 2


def test_quotes_are_marked_where_their_text_begins(qtbot, window: MainWindow, server) -> None:
    server.pieces = ["> שלום עולם\n\nשלום"]
    ask(qtbot, window, "Hello")
    view = window.page.transcript.view_of(window.desk.current.tree.path[-1].id)
    assert view is not None
    image = view.text_views[-1].grab().toImage()
    assert columns(image, LIGHT.border_strong)[0] > image.width() - 12


def test_an_empty_field_begins_where_lines_begin(qtbot, mirrored: None) -> None:
    field = GrowingEdit(lambda text: None)
    qtbot.addWidget(field)
    field.resize(300, 40)
    field.show()
    assert field.cursorRect().x() > 280
    field.setPlainText("Hello")
    assert field.cursorRect().x() < 20, "what is written is read in its own direction"
