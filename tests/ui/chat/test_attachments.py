"""Files that go with a message: read, shown, chosen from, sent and kept."""

from __future__ import annotations

import base64
import io
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent, QImage
from PySide6.QtWidgets import QFileDialog, QMenu

from tests.support.chat_window import ended, reply_view, say
from tests.support.disks import fill_up, small_disk
from tests.support.ordinary_user import ordinary_user
from tools.stand_ins.fake_openai import FakeServer
from ui.chat.attachments.chip import facts
from ui.chat.attachments.file_reading import FileReading
from ui.chat.attachments.pages_dialog import PagesDialog, places_in
from ui.chat.attachments.passages import by_vectors, by_words
from ui.chat.attachments.read_file import MOST_LETTERS, PART, Unreadable, read
from ui.chat.attachments.shelf import COPY
from ui.chat.messages.user_message import UserMessage
from ui.chat.storage.store import ChatStore
from ui.client.attachments import Attachment, Part, SentParts, content_of, from_json, spans, to_json
from ui.client.chat_records import Message, Status
from ui.theme.appearance import Appearance, ThemeChoice
from ui.window.main_window import MainWindow


def pdf(*pages: str) -> bytes:
    """Return a PDF with these lines, one on each page."""
    texts = [f"BT /F1 12 Tf 40 700 Td ({text}) Tj ET".encode() for text in pages]
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]  # fmt: skip
    for at, text in enumerate(texts):
        page = f"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents {5 + 2 * at} 0 R>>"
        objects += [page.encode(), b"<</Length %d>>stream\n%s\nendstream" % (len(text), text)]
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj%s endobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return out.getvalue()


def locked_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer, out = PdfWriter(PdfReader(io.BytesIO(pdf("secret")))), io.BytesIO()
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def zipped(**files: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def docx(*paragraphs: str) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    document = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    return zipped(**{"[Content_Types].xml": "<a/>", "word/document.xml": document})


def picture(kind: str = "PNG", size: tuple[int, int] = (30, 20)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind)
    return out.getvalue()


def attached(folder: Path, name: str, data: bytes) -> Attachment:
    (folder / name).write_bytes(data)
    return read(folder / name, lambda share: None)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.py", b"def f():\r\n\treturn 1\r\n", "def f():\n\treturn 1\n"),
        ("bom.txt", b"\xef\xbb\xbfFoxes", "Foxes"),
        ("wide.txt", "Füchse".encode("utf-16"), "Füchse"),
        ("old.txt", "Füchse".encode("latin-1"), "Füchse"),
        ("no-extension", b"{}", "{}"),
        ("a.docx", docx("One &amp; two", "Three"), "\nOne & two\nThree"),
        ("a.pdf", pdf("First page", "Second page"), "First page\n\nSecond page\n\n"),
    ],
)
def test_text_comes_out_of_a_file(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    found = attached(tmp_path, name, data)
    assert "".join(part.text for part in found.parts) == text
    assert (found.name, found.n_bytes, found.image) == (name, len(data), "")


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b" \n", "a.txt is empty"),
        ("a.bin", bytes(range(256)), "neither text nor a PDF"),
        ("a.exe", b"MZ\x90\x00", "is a program"),
        ("a.gguf", b"GGUF\x03\x00", "open it in the library"),
        ("a.doc", b"\xd0\xcf\x11\xe0 ", "save it as PDF or docx"),
        ("a.xlsx", zipped(**{"xl/workbook.xml": "<a/>"}), "is a table"),
        ("a.zip", zipped(a="b"), "is an archive"),
        ("a.docx", docx("words")[:80], "is damaged"),
        ("a.docx", docx(""), "holds no text"),
        ("a.docx", zipped(**{"word/document.xml": "<a"}), "is damaged"),
        ("a.pdf", b"%PDF-1.4 and nothing", "is damaged"),
        ("a.pdf", locked_pdf(), "protected by a password"),
        ("a.pdf", pdf(""), "holds no text"),
        ("a.png", picture()[:40], "is damaged"),
        ("long.txt", b"word " * (MOST_LETTERS // 5 + 1), "million characters"),
    ],
    # A zip holds the time it was made: as a name, no two processes would collect the same test.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_sent_gets_a_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(Unreadable, match=sentence) as raised:
        attached(tmp_path, name, data)
    assert str(raised.value).startswith(name)
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "gone.txt", "is not there")):
        with pytest.raises(Unreadable, match=said):
            read(path, lambda share: None)


def test_a_file_in_a_folder_that_may_not_be_read_is_said_to_be_that() -> None:
    with ordinary_user() as folder:
        folder.chmod(0)
        with pytest.raises(Unreadable, match="you have no permission to open it"):
            read(folder / "a.txt", lambda share: None)
        folder.chmod(0o700)


def test_parts_of_a_long_text_follow_each_other_and_know_their_lines(tmp_path: Path) -> None:
    text = "\n".join(f"line {number} of many" for number in range(1, 501))
    found = attached(tmp_path, "a.txt", text.encode())
    assert "".join(part.text for part in found.parts) == text
    assert max(len(part.text) for part in found.parts) <= PART
    assert found.parts[0].label.startswith("lines 1–")
    assert found.parts[-1].label.endswith("–500")
    assert found.text() == f'<file name="a.txt">\n{text}\n</file>'


def test_one_line_and_one_token_are_counted_as_one(tmp_path: Path) -> None:
    long = attached(tmp_path, "a.txt", b"x" * (PART + 9) + b"\nlast")
    assert [part.label for part in long.parts] == ["line 1", "lines 1–2"]
    short = attached(tmp_path, "b.txt", b"one")
    assert [part.label for part in short.parts] == ["line 1"]
    assert facts(replace(short, n_tokens=1, is_counted=True)).endswith("  ·  1 token")
    assert facts(replace(short, n_tokens=1_200)).endswith("about 1,200 tokens")


def test_large_images_are_made_smaller(tmp_path: Path) -> None:
    found = attached(tmp_path, "a.jpg", picture("JPEG", (4_000, 3_000)))
    assert found.image.startswith("data:image/jpeg;base64,")
    kept = Image.open(io.BytesIO(base64.b64decode(found.image.partition(",")[2])))
    assert kept.size == (2_048, 1_536)


PAGES = Attachment("a.pdf", 9, tuple(Part(f"page {n}", f"Page {n} tells. ") for n in (1, 2, 3, 3, 5)), n_tokens=50)


def test_a_choice_of_pages_is_sent_with_their_names_and_survives_as_json() -> None:
    chosen = Attachment("a.pdf", 9, PAGES.parts, choice=SentParts.PAGES, sent=(0, 2, 3), n_tokens=50)
    words = '<file name="a.pdf" shown="page 1, 3 of 5">\n[page 1]\nPage 1 tells.\n[page 3]\nPage 3 tells. Page 3 tells.'
    assert chosen.text() == f"{words}\n</file>"
    assert chosen.tokens == 30
    found = Attachment("a.txt", 9, tuple(Part(f"lines {n}–{n + 8}", "x\n" * 9) for n in (1, 10, 19)), sent=(2,))
    assert found.text().startswith('<file name="a.txt" shown="lines 19–27 of 27">')
    seen = Attachment("b.png", 3, image="data:image/png;base64,AA==")
    assert from_json(to_json((chosen, seen))) == (chosen, seen)
    assert from_json("nonsense") == from_json('[{"name": 3}]') == ()
    url = {"type": "image_url", "image_url": {"url": seen.image}}
    assert content_of("Why?", (chosen, seen)) == [url, {"type": "text", "text": f"{chosen.text()}\n\nWhy?"}]
    assert content_of("Why?", ()) == "Why?"


@pytest.mark.parametrize(
    ("text", "places"),
    [("1-3, 5", [0, 1, 2, 4]), ("2", [1]), ("3–4,3", [2, 3]), ("0", None), ("6", None), ("3-2", None), ("a", None)],
)
def test_pages_are_named_as_people_write_them(text: str, places: list[int] | None) -> None:
    assert places_in(text, 5) == places
    assert [spans(labels) for labels in (["page 1", "page 2", "page 7"], [])] == ["page 1, 2, 7", ""]


def test_passages_are_found_by_rare_words_or_by_direction() -> None:
    texts = ["the river and the bank", "the fox jumps", "the the the the"]
    assert by_words("Where is the fox?", texts)[0] == 1
    assert by_words("狐はどこにいますか", ["犬は庭にいる。", "狐は川の向こうに住む。"])[0] == 1
    assert by_vectors([1.0, 0.0], [[0.0, 2.0], [0.5, 0.1], [3.0, 3.0]]) == [1, 2, 0]


def test_a_reading_is_done_or_cancelled_in_a_process_of_its_own(qtbot, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("First", "Second"))
    reading = FileReading(path)
    shares: list[float] = []
    reading.progressed.connect(shares.append)
    with qtbot.waitSignal(reading.done) as done:
        reading.start()
    assert [part.label for part in done.args[0].parts] == ["page 1", "page 2"]
    assert shares == [0.5, 1.0]
    cancelled = FileReading(path)
    with qtbot.assertNotEmitted(cancelled.done, wait=0), qtbot.assertNotEmitted(cancelled.failed, wait=0):
        cancelled.start()
        cancelled.cancel()


# In the window.


def attach(qtbot, window: MainWindow, *paths: Path) -> None:
    shelf = window.page.composer.shelf
    shelf.add(paths)
    qtbot.waitUntil(lambda: not shelf.is_reading)


def send(qtbot, window: MainWindow, text: str) -> Message:
    say(qtbot, window, text)
    qtbot.waitUntil(lambda: len(window.desk.current.tree) > 0 and not window.desk.current.is_running)
    return window.desk.current.tree.path[-2]


def last_question(server: FakeServer) -> object:
    return server.requests[-1]["messages"][-1]["content"]


@pytest.fixture
def watched(qtbot, window: MainWindow) -> MainWindow:
    """The window with a model that is loaded."""
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.phase == "ready" and window.watch.models != ())
    return window


def test_files_are_dropped_counted_sent_and_kept(
    qtbot, qapp, watched: MainWindow, server: FakeServer, tmp_path: Path, api, lonely_api
) -> None:
    window, shelf = watched, watched.page.composer.shelf
    (tmp_path / "fox.txt").write_text("The fox is red.")
    (tmp_path / "gone.txt").write_text("")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in ("fox.txt", "gone.txt", "model.gguf")])
    actions, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    with qtbot.waitSignal(window.page.model_dropped) as model:
        window.page.dropEvent(QDropEvent(QPoint(9, 9), actions, data, button, Qt.KeyboardModifier.NoModifier))
    assert model.args == [str(tmp_path / "model.gguf")], "it is opened, not attached"
    qtbot.waitUntil(lambda: bool(shelf.attachments) and shelf.attachments[0].is_counted and not shelf.is_reading)
    assert shelf.problem.text() == "gone.txt is empty."
    assert shelf.way_out.text() == "Choose another file…"
    shelf.way_out.click()
    dialog = window.findChild(QFileDialog)
    dialog.filesSelected.emit([str(tmp_path / "fox.txt")])
    dialog.close()
    qtbot.waitUntil(lambda: len(shelf.attachments) == 2)
    assert not shelf.way_out.isVisible()
    shelf.chips[1].remove.click()
    assert "15 B  ·  4 tokens" in shelf.chips[0].button.text()
    asked = send(qtbot, window, "What colour?")
    content = '<file name="fox.txt">\nThe fox is red.\n</file>\n\nWhat colour?'
    assert last_question(server) == content
    assert shelf.chips == []
    view = window.page.transcript.view_of(asked.id)
    assert isinstance(view, UserMessage)
    view.files.buttons[0].click()
    view.edit.click()
    qtbot.waitUntil(lambda: view.files.y() < view.editor.y())  # its files stay where they are
    view.leave_editor()
    window.desk.current.regenerate(window.desk.current.tree.path[-1].id)
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    assert last_question(server) == content
    view.edited.emit(asked.id, "Which animal?")
    qtbot.waitUntil(lambda: len(server.requests) == 3 and not window.desk.current.is_running)
    assert last_question(server) == content.replace("What colour?", "Which animal?")
    window.desk.new_chat()
    attach(qtbot, window, tmp_path / "fox.txt")
    window.close()
    again = MainWindow(api, Appearance(qapp, ThemeChoice.LIGHT), tmp_path / "chats.db", tmp_path / "w.ini", lonely_api)
    qtbot.addWidget(again)
    qtbot.waitUntil(lambda: [one.name for one in again.page.composer.shelf.attachments] == ["fox.txt"])
    again.close()
    store = ChatStore(tmp_path / "chats.db")
    kept = [message.attachments for message in store.messages(asked.chat_id) if message.attachments]
    store.close()
    assert [files[0].name for files in kept] == ["fox.txt", "fox.txt"]


def test_files_that_are_still_read_stay_with_their_chat(qtbot, watched: MainWindow, tmp_path: Path) -> None:
    window, shelf = watched, watched.page.composer.shelf
    first = send(qtbot, window, "Hello").chat_id
    (tmp_path / "empty.txt").write_text("")
    shelf.add([long_file(tmp_path), tmp_path / "empty.txt"])
    assert shelf.is_reading
    with qtbot.waitSignal(shelf.read_aside):
        window.desk.new_chat()
        assert shelf.chips == [], "they are not of this chat"
    shelf.add([tmp_path / "animals.txt"])
    # It is written on a thread, and comes when another chat is shown.
    shelf.add_text(lambda: "What was pasted. " * 9)
    window.desk.open(first)
    qtbot.waitUntil(lambda: [one.name for one in shelf.attachments] == ["animals.txt"])
    qtbot.waitUntil(lambda: shelf.problem.text() == "empty.txt is empty.")
    window.desk.new_chat()
    qtbot.waitUntil(lambda: {one.name for one in shelf.attachments} == {"animals.txt", "Pasted text.txt"})
    assert not shelf.is_reading


def test_files_that_are_still_read_go_to_the_pane_that_shows_their_chat(qtbot, watched: MainWindow, tmp_path) -> None:
    window, left = watched, watched.page
    window.resize(1400, 800)
    first = send(qtbot, window, "Hello").chat_id
    (tmp_path / "empty.txt").write_text("")
    left.composer.shelf.add([long_file(tmp_path), tmp_path / "empty.txt"])
    window.desk.new_chat()
    window.chats.open_beside(first)
    shelf = window.page.composer.shelf
    qtbot.waitUntil(lambda: window.desk.current.chat.id == first)
    qtbot.waitUntil(lambda: shelf.problem.text() == "empty.txt is empty.")
    assert [one.name for one in shelf.attachments] == ["animals.txt"]
    assert left.composer.shelf.chips == []
    window.page.keep_draft()
    assert [one.name for one in window.desk.unsent.files[first]] == ["animals.txt"]


def test_a_file_that_is_read_is_seen_in_the_pane_that_shows_its_chat(qtbot, watched: MainWindow, tmp_path) -> None:
    window = watched
    window.resize(1400, 800)
    first = send(qtbot, window, "Hello").chat_id
    (tmp_path / "fox.txt").write_text("The fox is red.")
    window.page.composer.set_text("Which colour?")
    window.page.composer.shelf.add([long_file(tmp_path), tmp_path / "fox.txt"])
    window.desk.new_chat()
    window.chats.open_beside(first)
    shelf, seen = window.page.composer.shelf, []
    window.page.pane.current_changed.connect(lambda session: seen.append((shelf.is_reading, len(shelf.chips))))
    qtbot.waitUntil(lambda: seen == [(True, 2)])
    assert not window.page.composer.button.isEnabled()
    shelf.chips[0].remove.click()
    qtbot.waitUntil(lambda: [one.name for one in shelf.attachments] == ["fox.txt"])
    assert not shelf.is_reading


def test_what_was_being_read_when_the_window_was_closed_is_read_at_the_next_start(
    qtbot, qapp, watched: MainWindow, tmp_path: Path, api, lonely_api
) -> None:
    window, shelf = watched, watched.page.composer.shelf
    first = send(qtbot, window, "Hello").chat_id
    copy = Path(tempfile.mkdtemp(prefix=COPY)) / "Pasted text.txt"
    copy.write_text("What was pasted.")
    (tmp_path / "fox.txt").write_text("The fox is red.")
    shelf.add([tmp_path / "fox.txt"])
    window.desk.new_chat()
    gone = tmp_path / "gone.txt"
    gone.write_text("It goes away.")
    own = Path(tempfile.mkdtemp(prefix=COPY)) / "own.txt"  # as the folder of a copy, but the user's
    own.write_text("It is not ours.")
    shelf.read_again([(first, str(copy), True)])
    shelf.add([gone, own])
    assert shelf.is_reading
    window.close()
    assert copy.exists()
    gone.unlink()
    for at_once in (True, False):  # one start is left before it has read anything
        again = MainWindow(
            api, Appearance(qapp, ThemeChoice.LIGHT), tmp_path / "chats.db", tmp_path / "window.ini", lonely_api
        )
        qtbot.addWidget(again)
        if at_once:
            again.close()
    qtbot.waitUntil(lambda: "gone.txt" in again.page.composer.shelf.problem.text())
    qtbot.waitUntil(lambda: [one.name for one in again.page.composer.shelf.attachments] == ["own.txt"])
    assert own.exists()
    again.desk.open(first)
    names = ["fox.txt", "Pasted text.txt"]
    qtbot.waitUntil(lambda: [one.name for one in again.page.composer.shelf.attachments] == names)
    assert not copy.parent.exists()
    again.close()


def test_a_message_waits_for_a_file_also_where_it_is_read_anew_at_the_next_start(
    qtbot, qapp, watched: MainWindow, tmp_path: Path, api, lonely_api
) -> None:
    window = watched
    first = send(qtbot, window, "Hello").chat_id
    window.desk.new_chat()
    window.chats.open_beside(first)
    qtbot.waitUntil(lambda: window.desk.current.chat.id == first)
    composer = window.page.composer
    composer.set_text("What does it say?")
    assert composer.button.isEnabled()
    composer.shelf.add([long_file(tmp_path)])
    assert not composer.button.isEnabled()
    window.close()
    again = MainWindow(
        api, Appearance(qapp, ThemeChoice.LIGHT), tmp_path / "chats.db", tmp_path / "window.ini", lonely_api
    )
    qtbot.addWidget(again)
    composer, seen = again.chats.panes.pages[1].composer, []
    composer.shelf.changed.connect(
        lambda: seen.append((composer.text, composer.shelf.is_reading, composer.button.isEnabled()))
    )
    qtbot.waitUntil(lambda: ("What does it say?", True, False) in seen)
    qtbot.waitUntil(composer.button.isEnabled)
    assert [one.name for one in composer.shelf.attachments] == ["animals.txt"]
    again.close()


def test_what_goes_wrong_while_no_pane_shows_its_chat_is_said_where_it_is_opened(
    qtbot, watched: MainWindow, tmp_path: Path
) -> None:
    window, shelf = watched, watched.page.composer.shelf
    window.resize(1400, 800)
    first = send(qtbot, window, "Hello").chat_id
    (tmp_path / "empty.txt").write_text("")
    shelf.add([tmp_path / "empty.txt"])
    with qtbot.waitSignal(shelf.read_aside):
        window.desk.new_chat()
    window.chats.open_beside(first)
    qtbot.waitUntil(lambda: window.page.composer.shelf.problem.text() == "empty.txt is empty.")


def test_a_message_waits_for_what_was_pasted_until_it_is_written(qtbot, watched: MainWindow) -> None:
    page, shelf = watched.page, watched.page.composer.shelf
    page.composer.set_text("What is this?")
    shelf.add_text(lambda: "What was pasted. " * 9)
    assert shelf.is_reading
    assert not page.composer.button.isEnabled()
    qtbot.waitUntil(page.composer.button.isEnabled)
    assert [one.name for one in shelf.attachments] == ["Pasted text.txt"]


def test_an_image_that_cannot_be_kept_says_why(qtbot, watched: MainWindow, tmp_path: Path, monkeypatch) -> None:
    shelf, image = watched.page.composer.shelf, QImage(400, 300, QImage.Format.Format_RGB32)
    image.fill(0)  # else what lies in memory: it may be too much for the disk
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        fill_up(disk / "much")
        shelf.add_image(image)
        qtbot.waitUntil(lambda: "cannot be attached: " in shelf.problem.text())
        assert not shelf.is_reading
        assert [path.name for path in disk.iterdir()] == ["much"]
        (disk / "much").unlink()
        shelf.add_image(image)
        qtbot.waitUntil(lambda: bool(shelf.attachments))
    assert shelf.attachments[0].image


def long_file(folder: Path) -> Path:
    path = folder / "animals.txt"
    pages = [f"Chapter {number}. " + f"Nothing much happens here, word {number}. " * 60 for number in range(20)]
    pages[13] = "Chapter 13. The fox sleeps under the old oak. " + "It rains. " * 150
    path.write_text("\n\n".join(pages))
    return path


@pytest.mark.parametrize("has_embedder", [False, True])
def test_of_a_file_that_does_not_fit_passages_are_sent(
    qtbot, watched: MainWindow, server: FakeServer, tmp_path: Path, has_embedder: bool
) -> None:
    window = watched
    if has_embedder:
        server.models.append({"id": "bert", "object": "model", "capabilities": ["embedding"]})
        window.watch.look_at_models()
        qtbot.waitUntil(lambda: len(window.watch.models) == 3)
    attach(qtbot, window, long_file(tmp_path))
    qtbot.waitUntil(lambda: "context holds" in window.page.fit.banner.text)
    window.page.fit.banner.action.setFocus()
    window.page.fit.banner.action.click()
    menu = window.page.findChild(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
    words = [action.text() for action in menu.actions()]
    assert words == ["Send the passages that fit the question", "Choose what to send of animals.txt…"]
    menu.actions()[0].trigger()
    menu.close()
    assert window.page.fit.banner.text == ""
    assert window.page.composer.field.hasFocus()
    question = "Where is the vulpine one?" if has_embedder else "Where does the fox sleep?"
    asked = send(qtbot, window, question)
    assert "sleeps under the old oak" in str(last_question(server))
    assert len(str(last_question(server))) < 4_000
    (one,) = asked.attachments
    assert one.choice is (SentParts.BY_MEANING if has_embedder else SentParts.BY_WORDS)
    assert bool(server.embedded) is has_embedder


def test_of_files_that_were_too_long_less_is_sent_again(
    qtbot, watched: MainWindow, server: FakeServer, tmp_path: Path
) -> None:
    attach(qtbot, watched, long_file(tmp_path))
    server.error = (400, {"error": {"message": "Too long.", "type": "x", "code": "context_length_exceeded"}})
    send(qtbot, watched, "Where does the fox sleep?")
    server.error = None
    reply_view(watched).problem.button.click()
    menu = watched.page.findChild(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
    words = ["Send the passages that fit the question", "Choose what to send of animals.txt…", "Shorten the message"]
    assert [action.text() for action in menu.actions()] == words
    menu.actions()[0].trigger()
    menu.actions()[1].trigger()
    menu.close()
    qtbot.waitUntil(lambda: ended(qtbot, watched).status is Status.DONE)
    assert "sleeps under the old oak" in str(last_question(server))
    dialog = watched.findChild(PagesDialog)
    qtbot.keyClicks(dialog.field, "1")
    dialog.ok.click()
    assert ended(qtbot, watched).status is Status.DONE
    assert "Chapter 0." in str(last_question(server))
    assert len(str(last_question(server))) < 2_000


def test_pages_are_chosen_in_a_dialog(qtbot, watched: MainWindow, server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("First words", "Second words", "Third words"))
    attach(qtbot, watched, tmp_path / "a.pdf")
    shelf = watched.page.composer.shelf
    shelf.choose_pages(shelf.chips[0])
    dialog = watched.findChild(PagesDialog)
    assert not dialog.ok.isEnabled()
    qtbot.keyClicks(dialog.field, "2-3")
    assert dialog.places == (1, 2)
    place = dialog.list.visualItemRect(dialog.list.item(1))
    assert place.height() == dialog.list.sizeHintForRow(1), "lines do not move when the first is ticked"
    qtbot.mouseClick(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=place.center())
    assert dialog.places == (2,)
    dialog.ok.click()
    send(qtbot, watched, "")
    assert last_question(server) == '<file name="a.pdf" shown="page 3 of 3">\n[page 3]\nThird words\n</file>'
    assert watched.desk.current.chat.title == "a.pdf"


def test_an_image_goes_to_a_model_that_sees_and_to_no_other(qtbot, watched: MainWindow, server: FakeServer) -> None:
    server.models[0]["capabilities"] = ["completion"]
    watched.watch.look_at_models()
    qtbot.waitUntil(lambda: watched.watch.models[0].can == ("completion",))
    image, data = QImage(8, 8, QImage.Format.Format_RGB32), QMimeData()
    image.fill(0)
    data.setImageData(image)
    composer = watched.page.composer
    composer.field.insertFromMimeData(data)
    qtbot.waitUntil(lambda: "cannot see images" in composer.shelf.problem.text())
    say(qtbot, watched, "What is this?")
    assert (composer.text, server.requests) == ("What is this?", [])
    server.models[1]["capabilities"] = ["completion", "vision"]
    watched.watch.look_at_models()
    qtbot.waitUntil(lambda: watched.watch.models[1].can == ("completion", "vision"))
    composer.shelf.way_out.click()
    menu = watched.page.findChild(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
    assert [action.text() for action in menu.actions()] == ["ember-draft-q8_0", "Find one on the Hub…"]
    menu.actions()[0].trigger()
    menu.actions()[1].trigger()
    menu.close()
    assert watched.library is not None
    assert watched.library.finder.field.text() == "VL"
    watched.show_page("chat")
    assert composer.shelf.problem.text() == ""
    asked = send(qtbot, watched, "What is this?")
    first, second = last_question(server)
    assert first["image_url"]["url"].startswith("data:image/png;base64,")
    assert second == {"type": "text", "text": "What is this?"}
    view = watched.page.transcript.view_of(asked.id)
    assert isinstance(view, UserMessage)
    view.files.buttons[0].click()


def test_another_file_is_not_offered_for_what_was_pasted_and_is_too_long(qtbot, window: MainWindow) -> None:
    shelf = window.page.composer.shelf
    shelf.add_text(lambda: "What was pasted. " * 250_000)
    qtbot.waitUntil(lambda: bool(shelf.problem.text()))
    assert shelf.way_out.isHidden()


def test_a_very_long_text_that_is_pasted_is_attached_or_it_is_said_why_not(
    qtbot, window: MainWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    composer = window.page.composer
    data = QMimeData()
    data.setText("A line of a log.\n" * 20_000)
    composer.field.insertFromMimeData(data)
    qtbot.waitUntil(lambda: len(composer.shelf.attachments) == 1)
    assert composer.shelf.attachments[0].name == "Pasted text.txt"
    rich = QMimeData()  # some programs copy nothing else
    rich.setData("text/html", b"<p>A <b>line</b> of a log.</p>" * 20_000)
    composer.field.insertFromMimeData(rich)
    qtbot.waitUntil(lambda: len(composer.shelf.attachments) == 2)
    assert composer.shelf.attachments[1].parts[0].text.startswith("A line of a log.\nA line")
    assert composer.text == ""
    rich.setData("text/html", b"<p style='font: large'>Short. </p>" + b"<br>" * 100_000)
    composer.field.insertFromMimeData(rich)
    assert composer.text.startswith("Short."), "there is more of marks than of letters"
    composer.set_text("")
    data.setText("Short.")
    composer.field.insertFromMimeData(data)
    assert composer.text == "Short."
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    data.setText("A line of a log.\n" * 20_000)
    composer.field.insertFromMimeData(data)
    qtbot.waitUntil(lambda: "No such file" in composer.shelf.problem.text())
