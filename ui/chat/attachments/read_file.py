"""Reads one file for a chat, in a process of its own: ``python -m ui.chat.attachments.read_file PATH``. No Qt.

It prints a line of JSON for each step, ``{"progress": 0.5}``, and at the end ``{"file": …}`` as ``attachments`` keeps
it or ``{"problem": "a sentence"}``. What a hostile file does then harms this process only, which may be killed.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import warnings
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from models.files.disk import is_there
from models.formatting.system_error import system_reason
from ui.client.attachments import Attachment, Part
from ui.language import tr

MIB = 1 << 20
MOST_BYTES = 200 * MIB  # of a file on disk
MOST_LETTERS = 4_000_000  # of text: about a million tokens, as the longest contexts have
MOST_PIXELS = 50_000_000  # as the server takes
WIDEST = 2_048  # pixels of the longer side: no projector looks at more
PART = 1_600  # characters: about 400 tokens, so that some passages fit into a small context
SECONDS = 120  # of processor time
MEMORY = 3 << 30  # bytes


class Unreadable(Exception):
    """Says in a sentence why a file cannot be attached."""


Told = Callable[[float], None]


def read(path: Path, told: Told) -> Attachment:
    """Return the file at ``path``; ``told`` hears the share that is done. Raises Unreadable."""
    name = path.name
    try:
        if path.is_dir():
            raise Unreadable(tr("{name} is a folder: attach the files in it.", name=name))
        if not is_there(path) or not path.is_file():
            raise Unreadable(tr("{name} is not there, or is not a file.", name=name))
        n_bytes = path.stat().st_size
        if n_bytes > MOST_BYTES:
            raise Unreadable(
                tr(
                    "{name} has {n_bytes:,.0f} MiB. A file can have {MOST_BYTES} MiB: attach a part.",
                    name=name,
                    n_bytes=n_bytes / MIB,
                    MOST_BYTES=MOST_BYTES // MIB,
                )
            )
        data = path.read_bytes()
    except PermissionError as error:
        raise Unreadable(tr("{name} cannot be read: you have no permission to open it.", name=name)) from error
    except OSError as error:
        raise Unreadable(tr("{name} cannot be read: {value}.", name=name, value=system_reason(error))) from error
    if not data.strip():
        raise Unreadable(tr("{name} is empty.", name=name))
    if _is_image(data):
        return image_of(name, data)
    return Attachment(name, n_bytes, tuple(_parts_of(name, data, told)))


def _parts_of(name: str, data: bytes, told: Told) -> list[Part]:
    if b"%PDF-" in data[:1024]:
        parts = _pdf(name, data, told)
    elif data.startswith(b"PK\x03\x04"):
        parts = _cut(_docx(name, data), tr("section"))
    else:
        parts = _cut(_text(name, data), LINES)
    n_letters = sum(len(part.text) for part in parts)
    if n_letters > MOST_LETTERS:
        raise Unreadable(
            tr(
                "{name} has {n_letters:.1f} million characters of text. A file can have "
                "{MOST_LETTERS:.0f} million: attach a part of it.",
                name=name,
                n_letters=n_letters / 1000000.0,
                MOST_LETTERS=MOST_LETTERS / 1000000.0,
            )
        )
    return parts


# Images.

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\x00", b"MM\x00*")


def image_of(name: str, data: bytes) -> Attachment:
    """Return an image as it is kept. Raises Unreadable."""
    if not _is_image(data):
        raise Unreadable(tr("{name} is damaged, or is an image of a kind that is not known.", name=name))
    return Attachment(name, len(data), image=_image(name, data))


def _is_image(data: bytes) -> bool:
    return data.startswith(_IMAGES) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def _image(name: str, data: bytes) -> str:
    """Return an image as a data URL, made smaller where it is larger than any model looks at."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
            if image.width * image.height > MOST_PIXELS:
                raise Unreadable(
                    tr(
                        "{name} has {width:,} x {height:,} pixels: make it smaller first.",
                        name=name,
                        width=image.width,
                        height=image.height,
                    )
                )
            turned = ImageOps.exif_transpose(image)
            is_photo = image.format == "JPEG"
            turned.thumbnail((WIDEST, WIDEST))
            kept, out = turned.convert("RGB" if is_photo else "RGBA"), io.BytesIO()
            kept.save(out, "JPEG" if is_photo else "PNG")
    except Unreadable:
        raise
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise Unreadable(tr("{name} is damaged, or is an image of a kind that is not known.", name=name)) from error
    kind = "jpeg" if is_photo else "png"
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"


# Documents.


def _pdf(name: str, data: bytes, told: Told) -> list[Part]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    parts: list[Part] = []
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(
                tr("{name} is protected by a password: save a copy without one, and attach that.", name=name)
            )
        n_pages, n_letters = len(reader.pages), 0
        for number, page in enumerate(reader.pages, 1):
            text = _clean(page.extract_text()).strip()
            n_letters += len(text)
            parts += (
                [Part(tr("page {number}", number=number), piece) for piece in _pieces(f"{text}\n\n")] if text else []
            )
            told(number / n_pages)
            if n_letters > MOST_LETTERS:
                break
    except (Unreadable, MemoryError):
        raise
    except DependencyError as error:
        raise Unreadable(
            tr("{name} is encrypted in a way that cannot be read here: save a copy without that.", name=name)
        ) from error
    except (PyPdfError, Exception) as error:  # a hostile file finds errors of all kinds in a parser
        raise Unreadable(tr("{name} is damaged: its pages cannot be read.", name=name)) from error
    if not parts:
        raise Unreadable(
            tr("{name} holds no text: its pages are pictures. Attach a copy with recognised text.", name=name)
        )
    return parts


_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFFICE = {"xl/workbook.xml": tr("a table"), "ppt/presentation.xml": tr("slides"), "content.xml": tr("an OpenDocument")}


# Beside its own error zipfile raises these: for a password, for what it cannot unpack, for what ends too soon.
_BROKEN_ZIP = (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, ValueError, zlib.error)


def _docx(name: str, data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if "word/document.xml" not in names:
                what = next((what for inner, what in _OFFICE.items() if inner in names), tr("an archive"))
                ways = tr("unpack it") if what == tr("an archive") else tr("save it as PDF or as text")
                raise Unreadable(
                    tr(
                        "{name} is {what}, which cannot be read here: {ways}, and attach that.",
                        name=name,
                        what=what,
                        ways=ways,
                    )
                )
            if archive.getinfo("word/document.xml").file_size > MOST_BYTES:
                raise Unreadable(
                    tr(
                        "{name} holds more than {MOST_BYTES} MiB of text: attach a part of it.",
                        name=name,
                        MOST_BYTES=MOST_BYTES // MIB,
                    )
                )
            tree = ElementTree.fromstring(archive.read("word/document.xml"))
    except (*_BROKEN_ZIP, ElementTree.ParseError) as error:
        raise Unreadable(
            tr("{name} is damaged, or is protected by a password: it cannot be unpacked.", name=name)
        ) from error
    text = _clean("".join(_word_text(tree)))
    if not text.strip():
        raise Unreadable(tr("{name} holds no text.", name=name))
    return text


def _word_text(tree: ElementTree.Element) -> Iterator[str]:
    """Yield the text of a Word document: paragraphs as lines, cells of a row side by side."""
    for element in tree.iter():
        match element.tag.removeprefix(_WORD):
            case "t":
                yield element.text or ""
            case "p" | "tr":
                yield "\n"
            case "tc":
                yield " | "
            case "tab":
                yield "\t"
            case "br" | "cr":
                yield "\n"


_NOT_TEXT = {
    b"\x7fELF": tr("a program"), b"MZ": tr("a program"), b"GGUF": tr("a model: open it in the library"),
    b"{\\rtf": tr("an RTF document: save it as PDF or as text"), b"\xd0\xcf\x11\xe0": tr("an old Office document: "
    "save it as PDF or docx"), b"SQLite format 3": tr("a database"), b"\x1f\x8b": tr("packed: unpack it first"),
    b"7z\xbc\xaf": tr("packed: unpack it first"), b"Rar!": tr("packed: unpack it first"),
}  # fmt: skip


def _text(name: str, data: bytes) -> str:
    what = next((what for begin, what in _NOT_TEXT.items() if data.startswith(begin)), "")
    if what:
        raise Unreadable(
            tr("{name} is {what}.", name=name, what=what)
            if ":" in what
            else tr("{name} is {what}, and no text.", name=name, what=what)
        )
    for encoding in _encodings(data):
        try:
            return _clean(data.decode(encoding))
        except UnicodeDecodeError:
            continue
    raise Unreadable(tr("{name} is neither text nor a PDF, a docx or an image: a model could not read it.", name=name))


def _encodings(data: bytes) -> tuple[str, ...]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    if b"\0" in data:
        return ()
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in data[:4096])
    return ("utf-8-sig", "cp1252", "latin-1") if odd < len(data[:4096]) / 50 else ()


def _clean(text: str) -> str:
    """Return text as a chat can keep it: one kind of line end, no zeros, no lone surrogates."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return whole.encode("utf-8", "replace").decode("utf-8")


LINES = tr("lines")


def _cut(text: str, word: str) -> list[Part]:
    """Return a text in parts that end with a line, labelled by their lines or numbers."""
    parts, line = [], 1
    for number, piece in enumerate(_pieces(text), 1):
        last = line + piece.count("\n") - piece.endswith("\n")
        parts.append(Part(_lines(line, last) if word == LINES else f"{word} {number}", piece))
        line += piece.count("\n")
    return parts


def _lines(first: int, last: int) -> str:
    return f"{LINES} {first}–{last}" if last > first else tr("line {first}", first=first)


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most PART characters, cut behind a paragraph, a line or a word."""
    at = 0
    while at < len(text):
        end = at + PART
        if end < len(text):
            near = (text.rfind(mark, at + PART // 2, end) + len(mark) for mark in ("\n\n", "\n", " "))
            end = next((found for found in near if found > at + PART // 2), end)
        yield text[at:end]
        at = end


def _limit() -> None:
    """Bound what a hostile file can use of this machine."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """Read the file that is named and print what it is."""
    import logging

    logging.disable()  # pypdf remarks on every oddity
    _limit()
    sys.setrecursionlimit(5_000)

    def say(**what: object) -> None:
        print(json.dumps(what), flush=True)

    path = Path(sys.argv[1])
    try:
        found = read(path, lambda share: say(progress=round(share, 3)))
        say(file=asdict(found))
    except Unreadable as error:
        say(problem=str(error))
    except (MemoryError, RecursionError):
        say(problem=tr("{name} needs too much memory to be read: attach a smaller part of it.", name=path.name))


if __name__ == "__main__":
    main()
