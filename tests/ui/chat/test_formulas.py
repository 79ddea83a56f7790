"""LaTeX in replies: what is a formula, how it is drawn, and that it is copied as it was written."""

from __future__ import annotations

import pytest
from markdown_it.token import Token
from PySide6.QtGui import QTextCursor

from tests.support.chat_window import copied_code
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.markdown.formula_drawing import draw
from ui.chat.markdown.formulas import REPLACEMENT
from ui.chat.markdown.markdown import Markdown
from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.messages.assistant_message import AssistantMessage
from ui.theme.appearance import ThemeChoice
from ui.window.main_window import MainWindow


def formulas(tokens: list[Token]) -> list[str]:
    found = [token for token in tokens if token.type in ("formula", "formula_block")]
    return [t.content for t in found] + [latex for t in tokens if t.children for latex in formulas(t.children)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so $x^2$ is", ["x^2"]),
        (r"so \(a_i\) is", ["a_i"]),
        ("$$\nE = mc^2\n$$", ["E = mc^2"]),
        (r"\[ \frac12 \]", [r"\frac12"]),
        ("Thus $$x$$ holds", ["x"]),
        ("- a list with\n\n  $$\n  - b\n  $$\n", ["- b"]),
        ("text\n$$\na\n$$\nmore", ["a"]),
        ("costs $5 and $6", []),
        ("US$5 and CA$6", []),
        ("$5, which is not 6$ at all", []),
        (r"a \$5 note and a \$6 note", []),
        ("`$x$` in code", []),
        ("```\n$x$\n```", []),
        ("open $x and", []),
        ("$$\nopen = 1\n- b", []),
        ("from $5-$6", []),
        ("$x$ and $y$", ["x", "y"]),
        ("$$ $$", []),
    ],
)
def test_what_is_a_formula(text: str, expected: list[str]) -> None:
    assert formulas(Markdown().parse(text)) == expected
    assert {token.type for token in Markdown().parse("$$\na\n- b\n===")} == {"open_formula"}, (
        "no list until it is closed"
    )


@pytest.mark.parametrize("latex", [r"\frac{a", r"\nosuchcommand{x}", "x_{", "x" * 5_000])
def test_wrong_latex_has_no_drawing(latex: str) -> None:
    assert draw(latex, is_display=False) is None


@pytest.mark.parametrize("latex", [r"\begin{pmatrix}a&b\\c&d\end{pmatrix}", r"\text{tok/s}", r"\sum_{i=1}^n i"])
def test_a_formula_has_a_line_to_stand_on(latex: str) -> None:
    drawing = draw(latex, is_display=True)
    assert drawing is not None
    assert drawing.width > 0.5
    assert drawing.ascent > 0.5
    assert drawing.descent >= 0


def reply(qtbot, window: MainWindow) -> MarkdownView:
    window.desk.current.send("Show me")
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    view = window.page.transcript.view_of(window.desk.current.tree.path[-1].id)
    assert isinstance(view, AssistantMessage)
    return view.view


def colours_of(view: MarkdownView) -> set[str]:
    image = view.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_formulas_are_drawn_and_copied_as_they_were_written(qtbot, window: MainWindow, server: FakeServer) -> None:
    source = "Let $x^2$ be:\n\n$$\n\\frac{a}{b}\n$$\n\nand $\\nosuch$."
    server.pieces = [source[i : i + 3] for i in range(0, len(source), 3)]
    view = reply(qtbot, window)
    qtbot.waitUntil(lambda: view.toPlainText() == f"Let {REPLACEMENT} be:\n{REPLACEMENT}\nand $\\nosuch$.")
    cursor = QTextCursor(view.document())
    cursor.select(QTextCursor.SelectionType.Document)
    view.setTextCursor(cursor)
    copied = view.createMimeDataFromSelection()
    assert copied.text() == "Let $x^2$ be:\n$$\n\\frac{a}{b}\n$$\nand $\\nosuch$."
    height = view.height()
    window.resize_text(150)
    assert view.height() > height
    window.choose_theme(ThemeChoice.DARK)
    assert window.tools.style.palette.text in colours_of(view)


def test_a_wide_formula_is_made_smaller_and_a_diagram_is_text(qtbot, window: MainWindow, server: FakeServer) -> None:
    server.pieces = ["$$" + " + ".join(f"x_{{{i}}}" for i in range(80)) + "$$"]
    view = reply(qtbot, window)
    qtbot.waitUntil(lambda: view.toPlainText() == REPLACEMENT)
    assert view.document().idealWidth() <= view.width()
    server.pieces = ["```mermaid\ngraph LR\n  a --> b\n```\n"]
    view = reply(qtbot, window)
    assert view.toPlainText().strip().startswith("mermaid  ·  a diagram as text")
    assert copied_code(qtbot, view) == "graph LR\n  a --> b"
