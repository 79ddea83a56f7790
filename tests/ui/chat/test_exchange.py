"""Chats to files and back: our own form, and what other programs export."""

from __future__ import annotations

import json
import sqlite3
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QProcess, Qt
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QToolButton

from ui.chat.exchange.exchange import Exchange
from ui.chat.exchange.found_chat import UnknownFile, epoch_milliseconds
from ui.chat.exchange.read_chats import read
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids
from ui.chat.storage.message_tree import MessageTree
from ui.chat.storage.store import ChatStore
from ui.client.attachments import Attachment, Part
from ui.client.chat_records import Chat, ChatSettings, Message, Role, Status, Timings
from ui.client.tool_calls import CallStatus, ToolCall
from ui.platform.gui_thread import GuiThread
from ui.platform.helper_process import HelperProcess
from ui.theme.colours import colours
from ui.window.main_window import MainWindow

AT = 1_700_000_000.25
OURS_WITH = b'{"format": "slipstream-chats", "version": 1, "chats": %s}'  # what stands in place of its chats


def node(key: str, parent: str | None, role: str = "", *parts: object, **more: object) -> dict[str, object]:
    content = {"content_type": more.pop("kind", "text"), "parts": list(parts)}
    message = {"id": key, "author": {"role": role}, "create_time": AT, "content": content, "metadata": more}
    return {"id": key, "parent": parent, "children": [], "message": message if role else None}


CHATGPT = [
    {
        "title": "Foxes", "create_time": AT, "update_time": AT, "conversation_id": "abc", "current_node": "e",
        "mapping": {
            "root": node("root", None),
            "s": node("s", "root", "system", "", is_visually_hidden_from_conversation=True),
            "a": node("a", "s", "user", "What is a fox?"),
            "t": node("t", "a", "tool", "searched", kind="tether_quote"),
            "b": node("b", "t", "assistant", "An animal.", model_slug="gpt-4o"),
            "c": node("c", "a", "assistant", "A canine."),
            "d": node("d", "b", "user", {"content_type": "image_asset_pointer"}, "And this?", kind="multimodal_text"),
            "e": node("e", "d", "assistant", "A wolf."),
        },
    },
    {"title": "Empty", "create_time": AT, "id": "x", "current_node": "r", "mapping": {"r": node("r", None)}},
]  # fmt: skip
LM_STUDIO = {
    "name": "Foxes", "pinned": True, "createdAt": 1_700_000_000_250, "systemPrompt": "Be brief.", "tokenCount": 9,
    "messages": [
        {"currentlySelected": 0, "versions": [{"type": "singleStep", "role": "user", "content": [
            {"type": "text", "text": "What is a fox?"}, {"type": "file", "fileIdentifier": "a.png"}]}]},
        {"currentlySelected": 1, "versions": [
            {"type": "multiStep", "role": "assistant", "steps": [
                {"type": "contentBlock", "content": [{"type": "text", "text": "A canine."}]}]},
            {"type": "multiStep", "role": "assistant", "steps": [
                {"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": "Hm."}]},
                {"type": "contentBlock", "content": [{"type": "text", "text": "An animal."}],
                 "genInfo": {"indexedModelIdentifier": "qwen3"}},
                {"type": "debugInfoBlock", "debugInfo": "x"}]},
        ]},
    ],
}  # fmt: skip
OPEN_WEBUI = [
    {
        "id": "w1", "title": "Foxes", "pinned": True, "archived": True, "created_at": 1_700_000_000,
        "chat": {
            "title": "Foxes", "models": ["qwen3"], "params": {"system": "Be brief."},
            "history": {"currentId": "3", "messages": {
                "1": {"id": "1", "parentId": None, "role": "user", "content": "What is a fox?",
                      "timestamp": 1_700_000_000, "files": [{"type": "file"}]},
                "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "A canine.", "model": "qwen3"},
                "3": {"id": "3", "parentId": "1", "role": "assistant", "model": "qwen3", "content":
                      '<details type="reasoning">\n<summary>Thought</summary>\n> Hm.\n</details>\nAn animal.'},
            }},
        },
    }
]  # fmt: skip


def gpt4all(version: int = 12) -> bytes:
    """Return a chat as GPT4All keeps it."""

    def text(words: str) -> bytes:
        return struct.pack(">I", 2 * len(words)) + words.encode("utf-16-be")

    def item(name: str, words: str, inner: bytes | None) -> bytes:
        known = b"" if version > 11 else struct.pack(">i", 0)
        error = b"\0" if name == "Response: " and version > 10 else b""
        rest = (struct.pack(">q", 0) if inner is None else inner) if version > 11 else b""
        return known + text(name) + text(words) + text("") + b"\0" * 4 + error + struct.pack(">qq", 0, 0) + rest

    think = struct.pack(">q", 1) + text("Think: ") + text("Hm.") + struct.pack(">iq", 7, 0)
    head = (
        struct.pack(">Iiq", 0xF5D553CC, version, 1_700_000_000) + text("id") + text("Foxes") + text("") + text("llama")
    )
    state = b"\0" + struct.pack(">ii", 1, 0) + text("") + text("") + struct.pack(">I", 0) if version < 11 else b""
    items = item("Prompt: ", "What is a fox?", None) + item("Response: ", "An animal.", think)
    return head + struct.pack(">I", 0) + state + struct.pack(">i", 2) + items


def zipped(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def as_bytes(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def exchange(qtbot, store_path: Path) -> Iterator[Exchange]:
    gui, ids = GuiThread(), Ids()
    archive = ChatArchive(store_path, gui.post, lambda problem: None, ids.saw)
    assert archive.flush()
    yield Exchange(archive, ids)
    archive.close()
    gui.close()


@pytest.fixture
def run(qtbot, exchange: Exchange, store_path: Path) -> Callable[..., str]:
    """Import or export, and return what became of it."""

    def run(act: Callable[..., None], *arguments: object) -> str:
        with qtbot.waitSignal(exchange.ended) as ended:
            act(*arguments)
        return str(ended.args[0])

    return run


def kept(store_path: Path) -> list[tuple[Chat, list[Message]]]:
    store = ChatStore(store_path)
    chats = [store.chat(one.id) for one in [*store.chats(), *store.archived()]]
    found = [(chat, store.messages(chat.id)) for chat in chats if chat is not None]
    store.close()
    return found


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("conversations.json", as_bytes(CHATGPT),
         "1 chat imported. 1 chat without text left out. Left out: 1 image or file, 1 tool result or thought."),
        ("a.conversation.json", as_bytes(LM_STUDIO), "1 chat imported. Left out: 1 image or file."),
        ("chat-export.json", as_bytes(OPEN_WEBUI), "1 chat imported. In the archive: 1. Left out: 1 image or file."),
        ("gpt4all-1.chat", gpt4all(12), "1 chat imported."),
        ("gpt4all-2.chat", gpt4all(11), "1 chat imported."),
        ("gpt4all-3.chat", gpt4all(10), "1 chat imported."),
    ],
    ids=["ChatGPT", "LM Studio", "Open WebUI", "GPT4All 12", "GPT4All 11", "GPT4All 10"],
)  # fmt: skip
def test_chats_of_other_programs_come_in_once(
    exchange: Exchange, run, tmp_path: Path, store_path: Path, name: str, data: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert run(exchange.take_in, path) == sentence
    assert "1 chat was here already." in run(exchange.take_in, zipped(tmp_path / "all.zip", **{name: data}))
    ((chat, messages),) = kept(store_path)
    shown = MessageTree(messages, chat.leaf_id).path
    assert chat.title == "Foxes"
    assert (shown[0].role, shown[0].content) == (Role.USER, "What is a fox?")
    assert (shown[1].role, shown[1].content) == (Role.ASSISTANT, "An animal.")
    assert abs(chat.created_ms - 1_700_000_000_000) < 1_000


def test_a_chat_of_lm_studio_that_called_tools_comes_in_whole(exchange: Exchange, run, tmp_path, store_path) -> None:
    text = {"type": "text", "text": "It is noon."}
    step = {"type": "contentBlock", "defaultShouldIncludeInContext": True, "shouldIncludeInContext": True}
    request = {"type": "toolCallRequest", "callId": 1, "name": "time", "parameters": {}}
    result = {"type": "toolCallResult", "callId": 1, "content": "12:00"}
    reply = {
        "type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "qwen3-8b"},
        "steps": [
            step | {"stepIdentifier": "1700000005000-0.5", "content": [{"type": "text", "text": "A tool."}],
                    "style": {"type": "thinking", "ended": True}, "prefix": "<think>", "suffix": "</think>"},
            step | {"stepIdentifier": "1700000006000-0.5", "content": [request]},
            {"type": "toolStatus", "stepIdentifier": "1700000006500-0.5", "callId": 1},
            step | {"stepIdentifier": "1700000007000-0.5", "content": [result], "roleOverride": "tool"},
            step | {"stepIdentifier": "1700000008000-0.5", "content": [text],
                    "genInfo": {"identifier": "qwen3-8b@q4", "indexedModelIdentifier": "a/b/c.gguf"}},
        ],
    }  # fmt: skip
    asked = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "What time is it?"}]}
    fields = [{"key": "llm.prediction.systemPrompt", "value": "Be brief."}]
    chat = {
        "name": "Time", "pinned": False, "createdAt": 1_700_000_000_000, "tokenCount": 9, "systemPrompt": "",
        "preset": "", "perChatPredictionConfig": {"fields": fields}, "usePerChatPredictionConfig": True,
        "lastUsedModel": {"identifier": "qwen3-8b", "indexedModelIdentifier": "a/b/c.gguf"},
        "messages": [
            {"versions": [asked], "currentlySelected": 0}, {"versions": [reply], "currentlySelected": 0},
            {"versions": [reply | {"steps": [step | {"content": [text]}]}], "currentlySelected": 0},
        ],
    }  # fmt: skip
    (tmp_path / "1700000000000.conversation.json").write_bytes(as_bytes(chat))
    said = run(exchange.take_in, tmp_path / "1700000000000.conversation.json")
    assert said == "1 chat imported. Left out: 1 tool result or thought."
    ((taken, messages),) = kept(store_path)
    assert taken.settings.system_prompt == "Be brief."
    assert [(one.content, one.model, one.thoughts) for one in messages] == [
        ("What time is it?", None, ""), ("It is noon.", "qwen3-8b@q4", "A tool."), ("It is noon.", "qwen3-8b", ""),
    ]  # fmt: skip
    assert messages[1].created_ms == 1_700_000_005_000


def test_branches_thoughts_instructions_and_marks_come_along(exchange: Exchange, run, tmp_path, store_path) -> None:
    for name, content in (("a.json", LM_STUDIO), ("b.json", OPEN_WEBUI)):
        (tmp_path / name).write_bytes(as_bytes(content))
        run(exchange.take_in, tmp_path / name)
    for chat, messages in kept(store_path):
        assert chat.settings.system_prompt == "Be brief."
        tree = MessageTree(messages, chat.leaf_id)
        assert len(tree.versions(tree.path[1].id)) == 2
        assert (tree.path[1].thoughts, tree.path[1].model) == ("Hm.", "qwen3")
    store = ChatStore(store_path)
    assert [chat.is_pinned for chat in store.chats()] == [True]
    assert [chat.is_pinned for chat in store.archived()] == [True]
    store.close()


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.json", b"", "neither whole JSON"), ("a.json", b"[1, 2", "neither whole JSON"),
        ("a.json", b'{"a": 1}', "not a file of chats"), ("a.md", b"# A fox", "in Markdown"),
        ("a.json", b"[]", "a.json holds no chats"), ("a.json", OURS_WITH % b"[]", "a.json holds no chats"),
        ("a.json", OURS_WITH % b"5", "Slipstream is damaged"),
        ("a.chat", gpt4all()[:90], "ends too soon"),
        ("a.chat", gpt4all(3), "Another version"), ("a.zip", b"PK\x05\x06" + bytes(18), "holds no chats"),
    ],
)  # fmt: skip
def test_a_file_without_chats_gets_a_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnknownFile, match=sentence):
        list(read(tmp_path / name))
    with pytest.raises(UnknownFile, match="cannot be read"):
        list(read(tmp_path / "gone.json"))


def test_a_damaged_chat_or_impossible_numbers_leave_the_others(exchange: Exchange, run, tmp_path: Path) -> None:
    broken = {"title": "Broken", "mapping": {"a": {"message": {"metadata": {"attachments": 7}}}}}
    (tmp_path / "a.json").write_bytes(as_bytes([broken, *CHATGPT]))
    assert run(exchange.take_in, tmp_path / "a.json").startswith(
        "1 chat imported. 1 chat without text left out. Left out: 1 damaged chat"
    )

    def entry(number: int, at_ms: int, **more: object) -> dict[str, object]:
        said = {"id": 1, "role": "user", "content": "Hi", "created_ms": at_ms, **more}
        return {"id": number, "created_ms": at_ms, "updated_ms": at_ms, "title": "Foxes", "messages": [said]}

    chats = [entry(3, 10**17), entry(4, 10**40), entry(5, 1, thinking_ms=10**30), entry(6, 1)]
    (tmp_path / "a.json").write_bytes(as_bytes({"format": "slipstream-chats", "version": 1, "chats": chats}))
    assert run(exchange.take_in, tmp_path / "a.json") == "3 chats imported. Left out: 1 damaged chat."
    assert run(exchange.write, tmp_path / "all.zip") == "4 chats written to all.zip."
    assert "in Markdown, which cannot be imported" in run(exchange.take_in, tmp_path / "all.zip")


def test_a_damaged_file_of_an_archive_or_one_nested_too_deeply_leaves_the_others(
    exchange: Exchange, run, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.conversation.json", as_bytes(LM_STUDIO) * 50)
        archive.writestr("b.chat", gpt4all()[:90])
        archive.writestr("c.chat", gpt4all())
        archive.writestr("chat-export-1.json", OURS_WITH % b"5")
        archive.writestr("chat-export-2.json", b"[]")  # which is no damage
        archive.writestr("d.chat", gpt4all(), zipfile.ZIP_LZMA)
    whole = bytearray((tmp_path / "all.zip").read_bytes())
    whole[60] ^= 255  # in the first of them
    whole[whole.rindex(b"d.chat", 0, whole.rindex(b"d.chat")) + 20] ^= 255
    (tmp_path / "all.zip").write_bytes(whole)
    assert run(exchange.take_in, tmp_path / "all.zip") == "1 chat imported. Left out: 4 damaged files."

    said = {"id": 1, "role": "user", "content": "Hi"}
    one = {"id": 3, "title": "Foxes", "messages": [said]}
    data = as_bytes({"format": "slipstream-chats", "version": 1, "chats": [one | {"odd": "deep"}, one | {"id": 4}]})
    (tmp_path / "a.json").write_bytes(data.replace(b'"deep"', b"[" * 700 + b"]" * 700))
    words = run(exchange.take_in, tmp_path / "a.json")
    assert words in ("1 chat imported. Left out: 1 damaged chat.", "2 chats imported."), "as deep as this Python goes"


def test_where_the_disk_refuses_no_other_file_is_offered(
    qtbot, exchange: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(store: ChatStore, *chat: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ChatStore, "add_chat", refuse)
    (tmp_path / "a.json").write_bytes(as_bytes(CHATGPT))
    with qtbot.waitSignal(exchange.ended) as ended:
        exchange.take_in(tmp_path / "a.json")
    words, has_other, new = ended.args
    assert (words.partition(" Import")[0], has_other, new) == (
        "Not all chats could be saved: the disk is full.", False, [],
    )  # fmt: skip


def test_an_import_that_breaks_off_says_so(
    qtbot, exchange: Exchange, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"id": 1, "role": "user", "content": "Hi " * 4_000}
    chats = [{"id": number, "title": "Foxes", "messages": [said]} for number in range(100)]
    (tmp_path / "a.json").write_bytes(as_bytes({"format": "slipstream-chats", "version": 1, "chats": chats}))

    def take_in_and_kill() -> None:
        exchange.take_in(tmp_path / "a.json")
        helper = exchange.findChild(HelperProcess)
        assert helper is not None
        process = helper.findChild(QProcess)
        assert process is not None
        helper.said.connect(lambda line: process.kill(), Qt.ConnectionType.SingleShotConnection)

    words = run(take_in_and_kill)
    assert words.startswith("The rest of the file could not be read: it may be damaged. ")
    assert "imported." in words
    add, n_added = ChatStore.add_chat, []

    def fill_up(store: ChatStore, *what: object) -> None:
        if len(n_added) == 2:
            raise sqlite3.OperationalError("database or disk is full")
        n_added.append(add(store, *what))

    monkeypatch.setattr(ChatStore, "add_chat", fill_up)
    words = run(exchange.take_in, tmp_path / "a.json")
    assert words.startswith("Not all chats could be saved: the disk is full. Import")
    assert " 2 chats imported." in words


def test_a_stopped_import_takes_no_more_chats_in(
    qtbot, tmp_path: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"id": 1, "role": "user", "content": "Hi"}
    chats = [{"id": number, "title": "Foxes", "messages": [said]} for number in range(30)]
    (tmp_path / "a.json").write_bytes(OURS_WITH % as_bytes(chats))
    is_read, add = threading.Event(), ChatStore.add_chat

    def add_slowly(store: ChatStore, *what: Any) -> None:
        assert is_read.wait(60)
        add(store, *what)

    monkeypatch.setattr(ChatStore, "add_chat", add_slowly)
    gui, ids = GuiThread(), Ids()
    archive = ChatArchive(store_path, gui.post, lambda problem: None, ids.saw)
    exchange = Exchange(archive, ids)
    exchange.take_in(tmp_path / "a.json")
    helper = exchange.findChild(HelperProcess)
    assert helper is not None
    with qtbot.waitSignal(helper.ended):
        pass
    exchange.cancel()
    is_read.set()
    archive.close(60)
    gui.close()
    assert len(kept(store_path)) <= 1, "but for the one that was at work"


def test_times_are_read_in_any_unit() -> None:
    assert {epoch_milliseconds(1_700_000_000.0 * factor) for factor in (1, 1e3, 1e6, 1e9)} == {1_700_000_000_000}
    assert epoch_milliseconds("soon") == epoch_milliseconds(-1) == epoch_milliseconds(True) == 0


OURS = Chat(1, "Foxes: a/b", 5, 10, ChatSettings(model="ember", system_prompt="Be brief."), 13)
FILE = Attachment("a.txt", 3, (Part("lines 1–1", "abc"),))
CALL = ToolCall("0-0-a", "wiki_find", '{"word": "fox"}', "wiki", "find", "Vulpes", CallStatus.DONE, at=10)
SAID = [
    Message(11, 1, None, Role.USER, "What is a fox?", 5, attachments=(FILE,)),
    Message(12, 1, 11, Role.ASSISTANT, "A canine.", 6, Status.STOPPED, timings=Timings(decode_tokens=9)),
    Message(13, 1, 11, Role.ASSISTANT, "An animal 🦊.", 7, model="ember", thoughts="Hm.", thinking_ms=8.5,
            calls=(CALL,), drafted=((0, 2), (3, 5))),
]  # fmt: skip


def test_our_own_file_brings_all_back(exchange: Exchange, run, tmp_path: Path, store_path: Path) -> None:
    store = ChatStore(store_path)
    store.add_chat(OURS, SAID, "", ("animals", True, False))
    store.add_chat(Chat(2, "Second", 5, 6), [Message(21, 2, None, Role.USER, "Hi", 5)], "", ("", False, True))
    assert run(exchange.write, tmp_path / "all.json") == "2 chats written to all.json."
    assert run(exchange.take_in, tmp_path / "all.json") == "0 chats imported. 2 chats were here already."
    for number in (1, 2):
        store.delete(number, 9)
    assert run(exchange.take_in, tmp_path / "all.json") == "2 chats imported. In the archive: 1."
    (summary,) = store.chats()
    chat, messages = store.chat(summary.id), store.messages(summary.id)
    assert (summary.title, summary.folder, summary.is_pinned) == (OURS.title, "animals", True)
    assert chat is not None
    assert (chat.settings, chat.created_ms, chat.leaf_id) == (OURS.settings, 5, messages[2].id)
    alike = ("role", "content", "status", "timings", "attachments", "thoughts", "thinking_ms", "model", "calls",
             "drafted")  # fmt: skip
    assert [[getattr(one, name) for name in alike] for one in messages] == [
        [getattr(one, name) for name in alike] for one in SAID
    ]
    assert messages[1].parent_id == messages[2].parent_id == messages[0].id
    store.close()


def test_markdown_shows_the_branch_that_is_shown(exchange: Exchange, run, tmp_path: Path, store_path: Path) -> None:
    store = ChatStore(store_path)
    store.add_chat(OURS, SAID, "", ("", False, False))
    store.add_chat(Chat(2, "Foxes: a?b", 5, 6), SAID[:0], "", ("", False, False))
    assert run(exchange.write, tmp_path / "one.md", 1) == "1 chat written to one.md."
    text = (tmp_path / "one.md").read_text(encoding="utf-8")
    for piece in (
        "# Foxes: a/b",
        "Be brief.",
        "## You\n\n*File: a.txt*\n\nWhat is a fox?",
        "## Reply (ember)",
        "Hm.",
        "<summary>Tool find</summary>",
        '{"word": "fox"}\n\nVulpes',
        "An animal \n\n<details><summary>Tool",  # where it was called
        "🦊",
    ):
        assert piece in text
    assert "canine" not in text
    (tmp_path / "all.zip.part").write_bytes(zipped(tmp_path / "killed.zip", old=b"").read_bytes())
    run(exchange.write, tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.namelist() == ["Foxes a b.md", "Foxes a b (1).md"]
    sentence = run(exchange.write, tmp_path / "gone" / "one.md", 1)
    assert sentence == "Nothing was written to one.md: No such file or directory."
    for number in (1, 2):
        store.delete(number, 9)
    assert run(exchange.write, tmp_path / "none.zip") == "0 chats written to none.zip."
    assert zipfile.ZipFile(tmp_path / "none.zip").namelist() == []
    store.close()


def test_a_chat_is_written_in_the_form_that_was_chosen_and_elsewhere_if_that_fails(
    qtbot, window: MainWindow, tmp_path: Path
) -> None:
    chat = Chat(1, "Hello. How are you", 5, 6)
    window.chats.archive.ask(
        lambda store: store.add_chat(chat, SAID[:1], "", ("", False, False)), lambda none: None, None
    )
    window.desk.list_soon()
    history, note = window.chats.history, window.chats.history.note
    qtbot.waitUntil(lambda: history.model.n_chats == 1)
    menu = history.menu_for(history.model.index(history.model.row_of(1)))
    next(action for action in menu.actions() if action.text() == "Export…").trigger()

    def chosen(name: str = "") -> str:
        """Choose the name that stands there, or another one, in the dialog that is open."""
        (dialog,) = window.findChildren(QFileDialog)
        stands = dialog.selectedFiles()[0]
        dialog.fileSelected.emit(name or str(tmp_path / Path(stands).name))
        dialog.reject()
        return Path(stands).name

    (tmp_path / "taken.v2.md").write_text("mine", encoding="utf-8")
    assert chosen(str(tmp_path / "gone" / "a.md")) == "Hello. How are you.md", "its dot begins no suffix"
    qtbot.waitUntil(lambda: note.words.text() == "Nothing was written to a.md: No such file or directory.")
    assert note.button.text() == "Choose another place…"
    note.button.click()
    chosen(str(tmp_path / "taken.v2"))
    qtbot.waitUntil(lambda: note.words.text() == "1 chat written to taken.v2 (1).md.")
    assert note.button.text() == "OK"
    assert (tmp_path / "taken.v2.md").read_text(encoding="utf-8") == "mine"
    note.button.click()
    menu = history.menu_for(history.model.index(history.model.row_of(1)))
    next(action for action in menu.actions() if action.text() == "Export…").trigger()
    (dialog,) = window.findChildren(QFileDialog)
    arrows = [box.findChild(QLabel) for box in dialog.findChildren(QComboBox)]
    assert all(arrow.isVisible() and arrow.geometry().right() < arrow.parentWidget().width() for arrow in arrows)
    assert len(arrows) == 2, "that there is another kind of file is seen"
    (up,) = dialog.findChildren(QToolButton, "toParentButton")
    picture = up.icon().pixmap(up.iconSize()).toImage()
    drawn = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}
    assert colours().text in drawn, "black is not seen on dark"
    dialog.selectNameFilter(dialog.nameFilters()[1])
    dialog.filterSelected.emit(dialog.nameFilters()[1])
    assert chosen() == "Hello. How are you.json"
    qtbot.waitUntil(lambda: note.words.text() == "1 chat written to Hello. How are you.json.")
    assert json.loads((tmp_path / "Hello. How are you.json").read_text(encoding="utf-8"))["chats"]


def test_the_window_says_what_was_imported_and_lists_it(qtbot, window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_bytes(as_bytes(CHATGPT))
    history = window.chats.history
    history.import_wanted.emit(tmp_path / "conversations.json")
    assert history.note.button.isVisible()
    assert history.note.button.text() == "Stop"
    assert not any(action.isEnabled() for action in history.more_menu().actions()), "one at a time"
    qtbot.waitUntil(lambda: history.note.words.text().startswith("1 chat imported"))
    qtbot.waitUntil(lambda: history.model.n_chats == 1)
    assert all(action.isEnabled() for action in history.more_menu().actions())
    assert history.note.more.text() == "Open the chat"
    history.note.more.click()
    assert history.note.isHidden()
    qtbot.waitUntil(lambda: window.desk.current.chat.title == history.model.index(1).data())
    history.import_wanted.emit(tmp_path / "conversations.json")
    qtbot.waitUntil(lambda: "here already" in history.note.words.text())
    assert history.note.more.isHidden(), "none has come"
    history.note.button.click()
    assert history.note.isHidden()
    history.import_wanted.emit(tmp_path / "conversations.json")
    history.note.button.click()
    assert history.note.words.text() == "The import was stopped. What was imported until then is kept."
    (tmp_path / "broken.json").write_bytes(b"[1, 2")
    history.import_wanted.emit(tmp_path / "broken.json")
    calm = history.note.grab().toImage().pixelColor(12, 12)
    qtbot.waitUntil(lambda: "neither whole JSON" in history.note.words.text())
    assert history.note.grab().toImage().pixelColor(12, 12) != calm, "it is seen that it failed"
    history.note.button.click()  # another file
    (dialog,) = window.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "conversations.json"))
    dialog.reject()
    qtbot.waitUntil(lambda: "1 chat" in history.note.words.text())
