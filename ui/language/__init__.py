"""The language of the window: its words in English, and their translations as Qt keeps them.

Begin here: `tr` says a text in the language that was chosen, `choose` chooses it. Texts are English in the source.
`python -m tools.translations` gathers them into slipstream_de.ts, which people fill in (Qt Linguist opens it), and
makes slipstream_de.qm of it, which `tr` reads. Another language is another pair of files, and its name in `LANGUAGES`.

What the engine, the server and the library say is English, since other programs read it too. Their sentences come with
the text and the facts that they were made of (`models/formatting/sentence.py`), and are said anew here. What is left in
English is what other programs say: a remote server, llama.cpp, and the system where it refuses for a rare reason.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Final

from models.formatting import figures, sentence

if TYPE_CHECKING:
    from PySide6.QtCore import QTranslator

FOLDER: Final = Path(__file__).parent
CONTEXT: Final = "slipstream"
# By code, each in its own words.
LANGUAGES: Final = {"en": "English", "de": "Deutsch"}
# Languages that write 1.234,5 where English writes 1,234.5.
WITH_COMMA: Final = ("de",)
# The processes of the window are started with what it was started with.
_VARIABLE: Final = "SLIPSTREAM_LANGUAGE"

_translator: QTranslator | None = None


def choose(code: str) -> str:
    """Say texts in a language from now on, and in the processes that start from now on; return its code.

    A code that is not known, as "", is the language of the system where there is a translation, else English. Texts
    that modules hold are said when they are imported: call this before the window's modules are.
    """
    from PySide6.QtCore import QLocale

    chosen = code if code in LANGUAGES else _of_system()
    QLocale.setDefault(QLocale(chosen))  # for fields that take numbers
    os.environ[_VARIABLE] = chosen
    _use(chosen)
    return chosen


def chosen() -> str:
    """Return the code of the language that texts are said in."""
    code = os.environ.get(_VARIABLE, "")
    return code if code in LANGUAGES else "en"


def tr(text: str, /, **values: object) -> str:
    """Return a text in the language that was chosen, its {names} replaced by the values where there are any."""
    if _translator is None:
        return text.format(**values) if values else text
    said = _translator.translate(CONTEXT, text) or text
    return _FORMATTER.vformat(said, (), values) if values else said


def of_data(text: str) -> str:
    """Return a text that is not in the source of the window, as of the list of models, in the language that was chosen.

    One that has no translation stays as it is.
    """
    return (_translator.translate(CONTEXT, text) if _translator else "") or text


def day(seconds: float) -> str:
    """Return the day of a time, in seconds since 1970."""
    at = date.fromtimestamp(seconds)
    return tr("{day} {month} {year}", day=at.day, month=_month(at), year=str(at.year))


def month(at: date) -> str:
    """Return a day's month and year."""
    return f"{_month(at)} {at.year}"


def _month(at: date) -> str:
    # Python would name it in the language of the system.
    names = (
        tr("January"), tr("February"), tr("March"), tr("April"), tr("May"), tr("June"), tr("July"), tr("August"),
        tr("September"), tr("October"), tr("November"), tr("December"),
    )  # fmt: skip
    return names[at.month - 1]


def in_all(text: str) -> dict[str, str]:
    """Return a text in all languages by their codes, English first: for files that hold all of them."""
    others = ((code, translator.translate(CONTEXT, text)) for code in LANGUAGES if (translator := _read(code)))
    return {"en": text} | {code: words for code, words in others if words}


class _LocalFormatter(Formatter):
    """Writes numbers with the marks of the language."""

    def format_field(self, value: object, format_spec: str) -> str:
        written = format(value, format_spec)
        return figures.in_marks(written) if isinstance(value, int | float) else written


_FORMATTER: Final = _LocalFormatter()


def qt_translation() -> Path | None:
    """Return the file with the words of Qt's own dialogs and menus; None where English needs none."""
    from PySide6.QtCore import QLibraryInfo

    file = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath), f"qtbase_{chosen()}.qm")
    return file if chosen() != "en" and file.exists() else None


def _of_system() -> str:
    from PySide6.QtCore import QLocale

    return next((code for name in QLocale().uiLanguages() if (code := name.split("-")[0]) in LANGUAGES), "en")


def _read(code: str) -> QTranslator | None:
    if code == "en":
        return None
    from PySide6.QtCore import QTranslator

    translator = QTranslator()
    return translator if translator.load(str(FOLDER / f"slipstream_{code}.qm")) else None


DOT = "  ·  "  # between the facts of a line


def dotted(*parts: str) -> str:
    """Return what is known, with dots between."""
    return DOT.join(part for part in parts if part)


def _use(code: str) -> None:
    global _translator
    _translator = _read(code)
    figures.use_comma(code in WITH_COMMA)
    sentence.speak(of_data)


_use(chosen())
