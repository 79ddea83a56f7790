"""Formulas in documents: drawn on a thread of their own, and painted in any colour and size."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

from PySide6.QtCore import QByteArray, QObject, QRect, QRectF, QSizeF, QTimer, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from ui.chat.markdown.formula_drawing import COLOUR, Drawing, draw
from ui.platform.gui_thread import GuiThread

KIND = QTextFormat.ObjectTypes.UserObject.value + 1
SOURCE = QTextFormat.Property.UserProperty.value + 11  # on a formula: its markdown
_LATEX, _IS_DISPLAY, _EM = SOURCE + 1, SOURCE + 2, SOURCE + 3
REPLACEMENT = "\ufffc"  # what a document has in the place of a formula
MATCH = 1.15  # the letters of formulas are smaller than those of fonts for screens
TOGETHER_MS = 30  # formulas drawn in this time are shown at once
MOST = 4_000  # drawings that are kept: some kilobytes each


class Formulas(QObject):
    """The drawings of all formulas that were asked for."""

    drawn = Signal()  # some that were asked for are there now

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._gui = GuiThread(self)
        self._drawing = ThreadPoolExecutor(1, thread_name_prefix="formulas")
        self._known: dict[tuple[str, bool], Drawing | None] = {}
        self._asked: set[tuple[str, bool]] = set()
        self._soon = QTimer(self, singleShot=True, interval=TOGETHER_MS)
        self._soon.timeout.connect(self.drawn)

    def is_known(self, latex: str, is_display: bool) -> bool:
        """Return whether a formula is drawn, or known to be wrong; else draw it, and tell by ``drawn``."""
        key = latex, is_display
        if key in self._known:
            return True
        if key not in self._asked:
            self._asked.add(key)
            self._drawing.submit(draw, *key).add_done_callback(lambda future: self._on_drawn(key, future))
        return False

    def drawing(self, latex: str, is_display: bool) -> Drawing | None:
        """Return the drawing of a formula that is known; None where it is wrong."""
        return self._known.get((latex, is_display))

    def close(self) -> None:
        """Stop; what is not drawn yet stays text."""
        self._gui.close()
        self._drawing.shutdown(wait=False, cancel_futures=True)

    def _on_drawn(self, key: tuple[str, bool], future: Future[Drawing | None]) -> None:
        found = None if future.cancelled() or future.exception() is not None else future.result()
        self._gui.post(lambda: self._keep(key, found))

    def _keep(self, key: tuple[str, bool], found: Drawing | None) -> None:
        if len(self._known) >= MOST:
            self._known.clear()
        self._asked.discard(key)
        self._known[key] = found
        self._soon.start()


class FormulaPainter(QPyTextObject):
    """Paints the formulas of one document."""

    def __init__(self, formulas: Formulas, document: QTextDocument) -> None:
        super().__init__(document)
        self._formulas = formulas
        document.documentLayout().registerHandler(KIND, self)

    def intrinsicSize(self, document: QTextDocument, position: int, form: QTextFormat) -> QSizeF:
        """Return the room of a formula; one that is wider than the text is made smaller."""
        drawing = self._drawing(form)
        if drawing is None:
            return QSizeF(0, 0)
        em = self._em(document, form, drawing)
        return QSizeF(drawing.width * em, drawing.ascent * em + _descent(form))

    def drawObject(
        self, painter: QPainter, place: QRectF | QRect, document: QTextDocument, position: int, form: QTextFormat
    ) -> None:
        """Paint a formula on the line of its text."""
        drawing = self._drawing(form)
        if drawing is None:
            return
        em, place = self._em(document, form, drawing), QRectF(place)
        top = place.bottom() - _descent(form) - drawing.ascent * em
        box = QRectF(place.left(), top, drawing.width * em, (drawing.ascent + drawing.descent) * em)
        _renderer(drawing.svg, form.foreground().color().name()).render(painter, box)

    def _drawing(self, form: QTextFormat) -> Drawing | None:
        return self._formulas.drawing(str(form.property(_LATEX)), bool(form.property(_IS_DISPLAY)))

    def _em(self, document: QTextDocument, form: QTextFormat, drawing: Drawing) -> float:
        em, widest = float(form.property(_EM)), document.textWidth()
        return min(em, widest / drawing.width) if widest > 0 else em


def formula_format(
    base: QTextCharFormat, latex: str, is_display: bool, source: str, drawing: Drawing
) -> QTextCharFormat:
    """Return the format of the one character that stands for a formula in text of the format ``base``."""
    em = MATCH * int(base.property(QTextFormat.Property.FontPixelSize))
    form = QTextCharFormat(base)
    form.setObjectType(KIND)
    for name, value in ((SOURCE, source), (_LATEX, latex), (_IS_DISPLAY, is_display), (_EM, em)):
        form.setProperty(name, value)
    # Qt lets an object hang below the line by the descent of its font: a font is taken that reaches as low.
    form.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignBaseline)
    pixels = 1
    while QFontMetricsF(_font(form, pixels)).descent() < drawing.descent * em:
        pixels += 1
    form.setProperty(QTextFormat.Property.FontPixelSize, pixels)
    return form


def sources_in(document: QTextDocument, begin: int, end: int) -> list[str]:
    """Return the markdown of the formulas between two places, in order."""
    found, block = [], document.findBlock(begin)
    while block.isValid() and block.position() < end:
        pieces = block.begin()
        while not pieces.atEnd():
            fragment = pieces.fragment()
            first = max(begin, fragment.position())
            last = min(end, fragment.position() + fragment.length())
            if fragment.charFormat().objectType() == KIND and first < last:
                found += [str(fragment.charFormat().property(SOURCE))] * (last - first)
            pieces += 1
        block = block.next()
    return found


def with_sources(text: str, cursor: QTextCursor) -> str:
    """Return the selected text with the markdown of its formulas."""
    sources = iter(sources_in(cursor.document(), cursor.selectionStart(), cursor.selectionEnd()))
    return "".join(next(sources, "") if letter == REPLACEMENT else letter for letter in text)


def _descent(form: QTextFormat) -> float:
    return QFontMetricsF(form.toCharFormat().font()).descent()


def _font(form: QTextCharFormat, pixels: int) -> QFont:
    font = QFont(form.font())
    font.setPixelSize(pixels)
    return font


@lru_cache(maxsize=512)
def _renderer(svg: str, colour: str) -> QSvgRenderer:
    return QSvgRenderer(QByteArray(svg.replace(COLOUR, colour).encode()))
