"""A reply on the screen: the same however it came, and harmless whatever is in it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import partial

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QTextFrame, QTextTable, QWheelEvent

from tests.support.chat_window import copied_code
from tests.support.contrast import contrast
from ui.chat.markdown.code_colours import CodeColours
from ui.chat.markdown.formulas import Formulas
from ui.chat.markdown.markdown import Markdown
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.markdown.table_fit import ColumnNeed, column_widths
from ui.chat.markdown.text_tools import TextTools
from ui.chat.storage.search_hit import hit_spans
from ui.theme.colours import use_colours
from ui.theme.text_style import TextStyle
from ui.theme.tokens import DARK, LIGHT, Palette

TEXT = """# Title

A **bold** and *italic* ~~struck~~ `code` [link](http://x.y) line.

- first
  - nested

    with a paragraph
- second

3. three

   ```bash
   echo hi
   ```

4. four

> quote
>
> - list in it

---

```python
def f(n: int) -> int:
    return n  # 🦊
```

| a | b |
|:-:|--:|
| 1 | 2 |
| only one |

<script>alert(1)</script> ![image](http://evil.example/x.png) ![file](file:///etc/passwd)

    indented code

Last words\\
after a break."""


@pytest.fixture
def colours(qtbot):
    made = CodeColours()
    yield made
    made.close()


@pytest.fixture
def formulas(qtbot):
    made = Formulas()
    yield made
    made.close()


@pytest.fixture
def make_view(qtbot, colours: CodeColours, formulas: Formulas):
    def make() -> MarkdownView:
        view = MarkdownView(TextTools(Markdown(), colours, TextStyle(LIGHT, "Sans", "Monospace"), formulas))
        view.setFixedWidth(600)
        qtbot.addWidget(view)
        view.show()
        return view

    return make


def html(view: MarkdownView) -> str:
    return re.sub(r"\s+", " ", view.document().toHtml())


def grow(view: MarkdownView, text: str, seed: int, longest: int) -> None:
    chance = random.Random(seed)
    at = 0
    while at < len(text):
        end = at + chance.randint(1, longest)
        view.append(text[at:end])
        view.flush()
        at = end
    view.finish()


@pytest.mark.parametrize(("seed", "longest"), [(1, 1), (2, 3), (3, 9), (4, 40)])
def test_a_grown_text_looks_like_one_that_came_at_once(make_view, seed: int, longest: int) -> None:
    whole, grown = make_view(), make_view()
    whole.set_text(TEXT)
    grow(grown, TEXT, seed, longest)
    assert grown.text == TEXT
    assert html(grown) == html(whole)


def test_long_blocks_look_the_same_too(make_view) -> None:
    text = "- item\n" * 400 + "\n```py\n" + "x = 1\n" * 300 + "```\n\n| a |\n|---|\n" + "| 1 |\n" * 300
    whole, grown = make_view(), make_view()
    whole.set_text(text)
    grow(grown, text, 5, 200)
    assert html(grown) == html(whole)


@pytest.mark.parametrize("begin", ["First ", "A first part.\n\nThen ", "- one\n- two ", "```\nlet x = 1 "])
def test_what_is_selected_stays_so_while_the_text_grows(make_view, begin: str) -> None:
    view = make_view()
    view.append(f"{begin}fox and hen")
    view.flush()
    cursor = view.textCursor()
    cursor.setPosition(view.toPlainText().index("fox"))
    cursor.movePosition(cursor.MoveOperation.EndOfWord, cursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    for more in (" and", " more\n\n", "Next."):
        view.append(more)
        view.flush()
        assert view.textCursor().selectedText() == "fox"
    view.finish()
    assert view.textCursor().selectedText() == "fox"


@pytest.mark.parametrize("begin", ["A ", "A first part.\n\nThen a ", "- one\n- two ", "```\nlet x = 1 ", "A **bold "])
def test_what_was_found_stays_marked_while_the_text_grows(make_view, begin: str) -> None:
    view = make_view()
    view.append(f"{begin}fox and hen")
    view.flush()
    view.mark(partial(hit_spans, words="fox"))
    for more in (" and", "** more\n\n", "Next."):
        view.append(more)
        view.flush()
        assert [mark.cursor.selectedText() for mark in view.extraSelections()] == ["fox"]
    view.finish()
    view.set_style(TextStyle(DARK, "Sans", "Monospace"))
    assert [mark.cursor.selectedText() for mark in view.extraSelections()] == ["fox"]
    view.mark(None)
    assert not view.extraSelections()


def test_the_mark_at_the_end_of_code_does_not_grow_with_it_and_new_hits_are_marked(make_view) -> None:
    view = make_view()
    view.append("```\nlet fox")
    view.flush()
    view.mark(partial(hit_spans, words="fox"))
    for more in ("y = 1\n", "z\n", "fox\n"):
        view.append(more)
        view.flush()
    assert [mark.cursor.selectedText() for mark in view.extraSelections()] == ["fox", "fox"]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda palette: palette.name)
def test_what_was_found_can_be_read_in_quiet_text_too(make_view, palette: Palette) -> None:
    use_colours(palette)
    view = make_view()
    view.set_style(TextStyle(palette, "Sans", "Monospace"))
    view.set_text("```py\n# a fox\n```\n\n> a fox")
    view.mark(partial(hit_spans, words="fox"))
    marks = view.extraSelections()
    colours = [(mark.format.foreground().color().name(), mark.format.background().color().name()) for mark in marks]
    assert len(colours) == 2
    assert min(contrast(*pair) for pair in colours) >= 4.5


def test_markup_in_a_reply_stays_text_and_images_load_nothing(make_view) -> None:
    view = make_view()
    view.set_text(TEXT)
    shown = view.toPlainText()
    assert "<script>alert(1)</script>" in shown
    cursor = view.document().find("four")
    assert cursor.currentList().itemText(cursor.block()) == "4.", "numbers of a list go on after code in it"
    assert "<img" not in view.document().toHtml()
    assert view.loadResource(2, "file:///etc/passwd") is None


def test_a_link_is_reported_and_not_opened(qtbot, make_view) -> None:
    view = make_view()
    view.set_text("[here](https://example.org/a)")
    with qtbot.waitSignal(view.link_chosen) as chosen:
        view.anchorClicked.emit("https://example.org/a")
    assert chosen.args == ["https://example.org/a"]
    assert not view.openLinks()


def test_a_code_block_is_copied_without_its_label(qtbot, make_view) -> None:
    view = make_view()
    view.set_text(TEXT)
    qtbot.waitUntil(lambda: len(view.copy_buttons) == 3)
    assert copied_code(qtbot, view) == "echo hi"
    view.copy_buttons[1].click()
    assert QGuiApplication.clipboard().text() == "def f(n: int) -> int:\n    return n  # 🦊"
    assert view.copy_buttons[1].text() == "Copied"
    assert view.copy_buttons[1].accessibleName() == "Copy this code"


def test_code_is_coloured_and_follows_the_theme(qtbot, make_view, colours: CodeColours) -> None:
    view = make_view()
    view.set_text(TEXT)
    qtbot.waitUntil(lambda: LIGHT.code_keyword in view.document().toHtml())
    use_colours(DARK)
    view.set_style(TextStyle(DARK, "Sans", "Monospace"))
    qtbot.waitUntil(lambda: DARK.code_keyword in view.document().toHtml())
    assert LIGHT.code_keyword not in view.document().toHtml()


def test_tasks_in_a_list_have_boxes(make_view) -> None:
    view = make_view()
    view.set_text(
        "- [ ] buy **milk**\n- [x] sleep\n- [y] no task\n\n[ ] no list\n\n1. [X] first\n\n   [ ] second paragraph\n"
    )
    lines = view.document().toPlainText().split("\n")
    assert lines == ["☐ buy milk", "☑ sleep", "[y] no task", "[ ] no list", "☑ first", "[ ] second paragraph"]


def test_each_cell_of_a_table_has_its_own_text_and_is_copied_as_it_was_written(make_view) -> None:
    view = make_view()
    view.set_text("| a | b |\n|---|--:|\n| 1<br>one | **2** `<br>` |\n| only |\n")
    table = next(f for f in view.document().rootFrame().childFrames() if isinstance(f, QTextTable))
    cells = [[table.cellAt(row, column).firstCursorPosition().block().text() for column in (0, 1)] for row in range(3)]
    assert cells == [["a", "b"], ["1\u2028one", "2 <br>"], ["only", ""]]
    view = make_view()
    view.set_text(SPEEDS)
    view.selectAll()
    view.copy()
    copied = QGuiApplication.clipboard().mimeData()
    assert "1,000 GB/s" in copied.text()
    assert "1,000 GB/s" in copied.html()


SPEEDS = """| Machine | Bandwidth | 4 GB model |
|:--|--:|--:|
| Laptop, DDR5 | 80 GB/s | 20 `tok/s` |
| Desktop GPU | 1,000 GB/s | 250 tok/s |
"""


def tables(view: MarkdownView) -> list[QTextTable]:
    def inside(frame: QTextFrame) -> Iterator[QTextTable]:
        for child in frame.childFrames():
            yield from [child] if isinstance(child, QTextTable) else inside(child)

    return list(inside(view.document().rootFrame()))


def lines(table: QTextTable) -> list[str]:
    """Return the lines of all cells as they are on the screen."""
    found = []
    for row in range(table.rows()):
        for column in range(table.columns()):
            block = table.cellAt(row, column).firstCursorPosition().block()
            for number in range(block.layout().lineCount()):
                line = block.layout().lineAt(number)
                text = block.text()[line.textStart() : line.textStart() + line.textLength()]
                found.append(text.replace("\u2060", "").strip())
    return found


def right_edge(view: MarkdownView, table: QTextTable) -> float:
    cell = table.cellAt(0, table.columns() - 1).firstCursorPosition().block()
    form = table.format().toTableFormat()
    return view.document().documentLayout().blockBoundingRect(cell).right() + form.cellPadding() + form.border()


@pytest.mark.parametrize(("before", "each"), [("", ""), ("", "> "), ("1. a\n\n", "   ")])
def test_a_table_in_a_narrow_window_breaks_its_lines_between_words(make_view, before: str, each: str) -> None:
    view = make_view()
    view.set_text(before + "".join(each + row for row in SPEEDS.splitlines(keepends=True)))
    (table,) = tables(view)
    whole = lines(table)
    narrow = int(right_edge(view, table)) - 30
    words = {word for line in whole for word in line.split()}
    view.setFixedWidth(narrow)
    broken = lines(table)
    assert len(broken) > len(whole), "it has to break somewhere"
    assert {word for line in broken for word in line.split()} == words
    assert right_edge(view, table) <= narrow
    view.setFixedWidth(600)
    assert lines(table) == whole


def test_a_table_that_grows_in_a_narrow_window_ends_like_one_that_came_at_once(make_view) -> None:
    whole, grown = make_view(), make_view()
    for view in (whole, grown):
        view.setFixedWidth(250)
    whole.set_text(SPEEDS)
    grow(grown, SPEEDS, 6, 20)
    assert lines(tables(grown)[0]) == lines(tables(whole)[0])
    assert tables(whole)[0].format().toTableFormat().columnWidthConstraints()


def test_a_table_that_is_too_narrow_for_its_words_stays_inside(make_view) -> None:
    view = make_view()
    view.setFixedWidth(160)
    view.set_text(f"| a | b c |\n|---|---|\n| {'x' * 200} | two words |\n")
    (table,) = tables(view)
    assert right_edge(view, table) <= 160
    assert {"two", "words"} <= {word for line in lines(table) for word in line.split()}


WIDE_ROW = "".join(f"| value {n} " for n in range(30)) + "|\n"
WIDE_TABLE = f"{WIDE_ROW}{'|---' * 30}|\n{WIDE_ROW}"


def test_a_table_of_many_columns_keeps_its_words_and_scrolls_sideways(qtbot, make_view) -> None:
    view = make_view()
    view.set_text(f"{WIDE_TABLE}\n```py\nx = 1\n```\n")
    (table,) = tables(view)
    assert {word for line in lines(table) for word in line.split()} == {"value", *map(str, range(30))}
    bar = view.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.isVisible() and view.verticalScrollBar().maximum() == 0)
    assert bar.maximum() >= right_edge(view, table) - view.width(), "its last column can be reached"
    qtbot.waitUntil(lambda: bool(view.copy_buttons))
    (button,), place = view.copy_buttons, view.copy_buttons[0].x()

    def turn(pixels: QPoint, keys: Qt.KeyboardModifier) -> bool:
        nowhere, none, phase = QPointF(9, 9), Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
        event = QWheelEvent(nowhere, nowhere, QPoint(), pixels, none, keys, phase, False)
        view.wheelEvent(event)
        return event.isAccepted()

    assert not turn(QPoint(0, -120), Qt.KeyboardModifier.NoModifier), "that is for the transcript"
    assert bar.value() == 0
    assert turn(QPoint(-60, 0), Qt.KeyboardModifier.NoModifier)
    assert turn(QPoint(0, -20), Qt.KeyboardModifier.ShiftModifier)
    assert turn(QPoint(-20, 0), Qt.KeyboardModifier.ShiftModifier), "as some systems turn it"
    assert bar.value() == 100
    assert button.x() == place - 100, "it stays on its card"
    high = view.height()
    view.setFixedWidth(4_000)
    qtbot.waitUntil(lambda: not bar.isVisible() and view.height() < high)


@pytest.mark.parametrize("side", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_a_wide_table_stays_where_it_was_scrolled_to(make_view, side: Qt.LayoutDirection) -> None:
    view = make_view()
    view.setLayoutDirection(side)
    view.append(WIDE_TABLE)
    view.flush()
    bar = view.horizontalScrollBar()
    bar.setValue(bar.maximum())
    assert bar.value() > 1_000
    for more in (WIDE_ROW, WIDE_ROW, "\nA word", " more.\n\n", "The end."):
        view.append(more)
        view.flush()
        assert bar.value() == bar.maximum() > 1_000
    view.finish()
    view.setFixedWidth(660)
    assert bar.value() == bar.maximum() > 1_000
    view.set_style(TextStyle(DARK, "Sans", "Monospace"))
    assert bar.value() == bar.maximum() > 1_000


@pytest.mark.parametrize("side", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_what_was_found_in_a_column_out_of_sight_is_scrolled_to(make_view, side: Qt.LayoutDirection) -> None:
    view = make_view()
    view.setLayoutDirection(side)
    view.set_text(WIDE_TABLE)
    for words in ("29", "value"):
        view.mark(partial(hit_spans, words=words))
        assert view.go_to_first_mark() < view.height()
        assert 0 <= view.cursorRect(view.extraSelections()[0].cursor).x() < view.viewport().width()


def test_it_is_as_tall_as_its_text(qtbot, make_view) -> None:
    view = make_view()
    view.set_text("one line")
    low = view.height()
    view.append("\n\nand another\n\nand one more")
    qtbot.waitUntil(lambda: view.height() > low * 2)
    assert view.verticalScrollBar().maximum() == 0


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
    assert column_widths(needs, room, least=0) == widths


def test_no_column_is_cut_to_less_than_some_letters() -> None:
    assert column_widths([ColumnNeed(90, 50)] * 9 + [ColumnNeed(300, 300)], 100, least=80) == [50] * 9 + [80]
