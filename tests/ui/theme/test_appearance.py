"""What is out of sight while the looks change is left alone, and has the new ones when it is shown."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QComboBox, QLabel, QStackedWidget, QStyleOptionButton, QVBoxLayout, QWidget

from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.text_size import scaled
from ui.theme.tokens import DARK, Type
from ui.widgets.fields import CheckField
from ui.widgets.note_card import CALM, WARNING, NoteCard
from ui.widgets.page_layout import plain_label, style_as
from ui.widgets.row_list import ListRow, RowList


class Watcher(QObject):
    """Counts the events of widgets."""

    def __init__(self) -> None:
        super().__init__()
        self.n_events = Counter[QEvent.Type]()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        self.n_events[event.type()] += 1
        return False


@pytest.fixture
def pages(qtbot, appearance: Appearance) -> QStackedWidget:
    """Two pages; the second one has been seen, and the first one is shown."""
    made = QStackedWidget()
    qtbot.addWidget(made)
    made.addWidget(QWidget())
    made.addWidget(page := QWidget())
    column = QVBoxLayout(page)
    column.addWidget(plain_label("It went wrong.", "problem"))
    column.addWidget(field := QComboBox())
    field.addItems(["one", "two"])
    field.view()  # what opens at the field is made
    made.setCurrentIndex(1)
    made.show()
    made.setCurrentIndex(0)
    return made


def test_what_opens_at_a_field_is_left_out_with_the_page_of_the_field(pages, appearance: Appearance) -> None:
    field = pages.widget(1).findChild(QComboBox)
    watcher = Watcher()
    field.view().installEventFilter(watcher)
    appearance.wear(ThemeChoice.DARK, appearance.accent, 150)
    assert not watcher.n_events[QEvent.Type.StyleChange]
    pages.setCurrentIndex(1)
    assert watcher.n_events[QEvent.Type.StyleChange]
    field.showPopup()
    assert field.view().palette().text().color().name() == DARK.text
    assert field.view().font().pixelSize() == field.font().pixelSize() == scaled(Type.BODY)
    field.hidePopup()


def test_a_colour_of_a_rule_that_no_longer_counts_goes_also_where_it_was_out_of_sight(
    pages, appearance: Appearance
) -> None:
    label = pages.widget(1).findChild(QLabel)
    appearance.wear(ThemeChoice.DARK, appearance.accent, appearance.percent)
    pages.setCurrentIndex(1)
    assert label.palette().windowText().color().name() == DARK.danger
    style_as(label, "tone", "")
    assert label.palette().windowText().color().name() == DARK.text


def test_in_high_contrast_a_box_that_cannot_be_ticked_is_fainter(qtbot, appearance: Appearance) -> None:
    appearance.wear(ThemeChoice.CONTRAST, appearance.accent, 100)
    box = CheckField("Keep running")
    qtbot.addWidget(box)

    def edge() -> float:
        picture = box.grab().toImage()
        middle = picture.height() // 2
        return min(picture.pixelColor(x, middle).lightnessF() for x in range(4))

    can = edge()
    box.setEnabled(False)
    assert edge() > can + 0.2


def test_a_box_that_is_as_wide_as_its_words_shows_them_all(qtbot) -> None:
    box = CheckField("Files && folders")
    qtbot.addWidget(box)
    box.resize(box.sizeHint())
    option = QStyleOptionButton()
    box.initStyleOption(option)
    assert option.text == "Files && folders"
    box.resize(box.sizeHint().width() // 2, box.height())
    box.initStyleOption(option)
    assert option.text.endswith("…")


@pytest.mark.parametrize("kind", [CALM, WARNING])
def test_in_high_contrast_a_note_has_an_edge(qtbot, appearance: Appearance, kind: str) -> None:
    appearance.wear(ThemeChoice.CONTRAST, appearance.accent, 100)
    page = QWidget()
    qtbot.addWidget(page)
    note = NoteCard(kind, "Restart")
    note.setParent(page)
    note.say("The server still runs as it was started.")
    picture = note.grab().toImage()
    assert picture.pixelColor(0, picture.height() // 2).name() == appearance.palette.border


def test_in_high_contrast_a_row_that_is_chosen_has_an_edge(qtbot, appearance: Appearance) -> None:
    appearance.wear(ThemeChoice.CONTRAST, appearance.accent, 100)
    rows = RowList("Models")
    qtbot.addWidget(rows)
    rows.show_rows([ListRow("a", "First", ""), ListRow("b", "Second", "")])
    rows.resize(300, 200)
    rows.choose("b")
    place, picture = rows.visualRect(rows.currentIndex()), rows.viewport().grab().toImage()
    line = [picture.pixelColor(x, place.center().y()).name() for x in range(place.left(), place.left() + 16)]
    assert appearance.palette.border in line
