"""Imports and exports chats, one at a time, away from the window's thread; it tells how far it is."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from models.formatting.system_error import system_reason
from ui.chat.exchange.chat_text import FOOT, HEAD, as_json, as_markdown, file_name
from ui.chat.exchange.taking_in import Taken, take_in
from ui.chat.storage.chat_archive import ChatArchive, disk_reason
from ui.chat.storage.ids import Ids
from ui.chat.storage.store import ChatStore
from ui.client.chat_records import ChatSummary
from ui.language import tr
from ui.platform.helper_process import HelperProcess

MODULE = "ui.chat.exchange.read_chats"


class Exchange(QObject):
    """One import or export at a time. ``ended`` says in a sentence what became of it."""

    progressed = Signal(str)  # a sentence
    ended = Signal(str, bool, object)  # and whether another file may do better, and the chats that were imported
    took_in = Signal()  # chats have come

    def __init__(self, archive: ChatArchive, ids: Ids, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._archive, self._ids = archive, ids
        self._process: HelperProcess | None = None
        self._export: _Export | None = None

    @property
    def is_busy(self) -> bool:
        """True from a beginning to its end."""
        return self._process is not None or self._export is not None

    def cancel(self) -> None:
        """Stop; what was imported stays, a file that was begun is removed."""
        if self._process is not None:
            self._process.stop()
            self._process = None
            self.took_in.emit()
            self.ended.emit(tr("The import was stopped. What was imported until then is kept."), False, ())
        if self._export is not None:
            export, self._export = self._export, None
            self._archive.ask(lambda store: export.give_up(), lambda nothing: None, None)
            self.ended.emit(tr("The export was stopped."), False, ())

    # Import.

    def take_in(self, path: Path) -> None:
        """Import the chats of a file."""
        if self.is_busy:
            return
        taken, problems = Taken(), list[str]()
        process = self._process = HelperProcess(MODULE, [str(path)], self)
        process.said.connect(lambda line: self._on_line(process, bytes(line), taken, problems))
        process.ended.connect(lambda: self._on_read(process, taken, problems))
        self.progressed.emit(tr("Reading {name}…", name=path.name))
        process.start()

    def _on_line(self, process: HelperProcess, line: bytes, taken: Taken, problems: list[str]) -> None:
        def work(store: ChatStore) -> float | None:
            if self._process is not process:
                return None  # it was stopped, while this waited
            # A chat can have megabytes: it is parsed on the thread of the store.
            said = json.loads(line)
            if "problem" in said:
                problems.append(str(said["problem"]))
            if problems:
                return None
            try:
                store.mended(lambda store: take_in(store, said["chat"], self._ids, taken))
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError, sqlite3.IntegrityError):
                taken.left_out["damaged chat"] += 1
            except sqlite3.Error as error:  # of the others there would be gaps
                taken.is_refused = True
                problems.append(
                    tr(
                        "Not all chats could be saved: {reason} Import the file again when that is mended: what is "
                        "here already does not come twice.",
                        reason=disk_reason(error),
                    )
                )
                return None
            taken.share = float(said["progress"])
            return taken.share

        def done(share: float | None) -> None:
            if self._process is process and share is not None:
                n_all = len(taken.new) + taken.n_known
                self.progressed.emit(
                    tr(
                        "Importing…  {share:.0%}  ·  {n_all:,} {words}",
                        share=share,
                        n_all=n_all,
                        words=tr("chat") if n_all == 1 else tr("chats"),
                    )
                )

        self._archive.ask(work, done, None)

    def _on_read(self, process: HelperProcess, taken: Taken, problems: list[str]) -> None:
        def done(nothing: object) -> None:
            if self._process is not process:
                return
            self._process = None
            self.took_in.emit()
            n_seen = len(taken.new) + taken.n_known + taken.n_empty
            if not problems and taken.share < 1:
                problems.append(
                    tr("The rest of the file could not be read: it may be damaged.")
                    if taken.share
                    else tr("The file could not be read: it may be damaged.")
                )
            words = " ".join([*problems, *([taken.sentence()] if n_seen or not problems else [])])
            self.ended.emit(words, bool(problems) and not n_seen and not taken.is_refused, taken.new)

        self._archive.ask(lambda store: None, done, None)

    # Export.

    def write(self, path: Path, chat_id: int | None = None) -> None:
        """Write one chat, or all of them for None: the suffix says how (.json, .md, .zip of .md)."""
        if self.is_busy:
            return
        export = self._export = _Export(path)
        self.progressed.emit(tr("Exporting…"))

        def listed(chats: Sequence[ChatSummary]) -> None:
            export.chats = [chat for chat in chats if chat_id in (None, chat.id)]
            self._write_next(export)

        nothing: list[ChatSummary] = []
        self._archive.ask(lambda store: [*store.chats(), *store.archived()], listed, nothing)

    def _write_next(self, export: _Export) -> None:
        if self._export is not export:
            return
        n_all, at = len(export.chats), export.n_written
        if at == n_all:
            self._archive.ask(lambda store: export.finish(), partial(self._on_written, export), tr("it cannot be read"))
            return
        self.progressed.emit(tr("Exporting…  {at:,} of {n_all:,}", at=at, n_all=n_all))
        then: Callable[[str], None] = partial(self._on_step, export)
        self._archive.ask(export.step, then, tr("the chats cannot be read"))

    def _on_step(self, export: _Export, problem: str) -> None:
        if problem:
            self._on_written(export, problem)
        else:
            self._write_next(export)

    def _on_written(self, export: _Export, problem: str) -> None:
        if self._export is export:
            self._export = None
            n = export.n_written
            done = tr(
                "{n:,} {words} written to {name}.",
                n=n,
                words=tr("chat") if n == 1 else tr("chats"),
                name=export.path.name,
            )
            self.ended.emit(
                tr("Nothing was written to {name}: {problem}.", name=export.path.name, problem=problem)
                if problem
                else done,
                bool(problem),
                (),
            )


class _Export:
    """One file that is written; each step runs on the thread of the store and returns what went wrong, or ""."""

    def __init__(self, path: Path) -> None:
        self.path, self.chats = path, list[ChatSummary]()
        self.n_written = 0
        self._form = path.suffix.lower()
        self._part = path.with_name(f"{path.name}.part")
        self._archive: zipfile.ZipFile | None = None  # left open: to open it again reads the names of all that is in it
        self._names: dict[str, int] = {}
        self._is_begun = False

    def step(self, store: ChatStore) -> str:
        """Write the next chat."""
        summary = self.chats[self.n_written]
        chat, messages = store.chat(summary.id), store.messages(summary.id)
        try:
            if chat is not None and self._form == ".zip":
                self._opened().writestr(self._name(chat.title), as_markdown(chat, messages))
            elif chat is not None and self._form == ".json":
                self._append((",\n" if self._is_begun else HEAD) + as_json(chat, summary, messages))
            elif chat is not None:
                self._append(as_markdown(chat, messages))
        except OSError as error:
            self.give_up()
            return system_reason(error)
        self.n_written += 1
        return ""

    def finish(self) -> str:
        """Give the file its name."""
        try:
            if self._form == ".zip":
                self._opened().close()
            elif self._form == ".json":
                self._append(FOOT if self._is_begun else HEAD + FOOT)
            elif not self._is_begun:
                self._append("")
            self._part.replace(self.path)
        except OSError as error:
            self.give_up()
            return system_reason(error)
        return ""

    def give_up(self) -> None:
        """Remove what was begun."""
        if self._archive is not None:
            with contextlib.suppress(OSError):
                self._archive.close()
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)

    def _opened(self) -> zipfile.ZipFile:
        if self._archive is None:
            self._archive = zipfile.ZipFile(self._part, "w", zipfile.ZIP_DEFLATED)
        return self._archive

    def _append(self, text: str) -> None:
        with open(self._part, "a" if self._is_begun else "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        self._is_begun = True

    def _name(self, title: str) -> str:
        name = file_name(title)
        number = self._names[name.casefold()] = self._names.get(name.casefold(), -1) + 1
        return f"{file_name(title, number)}.md"
