"""The thread that owns the chat store: the window asks and is answered later, it never waits for a disk. No Qt."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from models.files.disk import backup_of, move_database
from models.formatting.system_error import system_reason
from ui.chat.storage.rescue import Rescue
from ui.chat.storage.store import ChatStore, ResultT, StoreDamaged, StoreTooNew, forget_mark, mark_of
from ui.client.chat_records import Chat, Message
from ui.language import tr

StoreJob = Callable[[ChatStore], None]
RETRY_SECONDS = 2.0
MEMORY_ONLY = tr("Chats now live in memory only and are gone when you close the window.")


class ChatArchive:
    """Chats on disk, behind a queue: jobs run in order on one thread.

    ``post`` runs a function on the thread of the window. ``on_problem`` gets a sentence when chats cannot be kept,
    and None when they can again. ``saw_id`` is told the highest id in the file before anything is read from it.
    A write that fails is kept and tried again, in order.
    """

    def __init__(
        self,
        path: Path,
        post: Callable[[Callable[[], None]], None],
        on_problem: Callable[[str | None], None],
        saw_id: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.path = path
        self._post = post
        self._on_problem = on_problem
        self._saw_id = saw_id
        self.is_new = False  # the file of chats: a damaged one was set aside
        self.is_in_memory = False  # no file can be used: chats end with the window
        self._has_messages = False
        self._jobs: queue.SimpleQueue[tuple[bool, StoreJob] | None] = queue.SimpleQueue()
        self._unsaved: deque[StoreJob] = deque()
        self._next_try = 0.0
        self._thread = threading.Thread(target=self._run, name="chat archive", daemon=True)
        self._thread.start()

    @property
    def is_failing(self) -> bool:
        """True while the disk refuses: what was written since is not in the file, and ends with the window."""
        return self._next_try > 0

    @property
    def has_unsaved(self) -> bool:
        """True where something that was said ends with the window."""
        return self.is_failing or (self.is_in_memory and self._has_messages)

    def save_chat(self, chat: Chat) -> None:
        """Write a chat's own fields."""
        self.write(lambda store: store.save_chat(chat))

    def save_message(self, message: Message) -> None:
        """Write a message."""
        self._has_messages = True
        self.write(lambda store: store.save_message(message))

    def write(self, work: StoreJob) -> None:
        """Let the store write something."""
        self._jobs.put((True, work))

    def ask(self, ask: Callable[[ChatStore], ResultT], then: Callable[[ResultT], None], otherwise: ResultT) -> None:
        """Ask the store; ``then`` gets the answer on the thread of the window, ``otherwise`` where the disk refuses."""

        self._ask(ask, then, otherwise, lambda reason: tr("The chats could not be read: {reason}", reason=reason))

    def _ask(
        self,
        ask: Callable[[ChatStore], ResultT],
        then: Callable[[ResultT], None],
        otherwise: ResultT,
        problem: Callable[[str], str],
    ) -> None:
        def work(store: ChatStore) -> None:
            answer = otherwise
            try:
                answer = store.mended(ask)
            except Exception as error:
                # Whatever one question meets: this thread must live, since it saves all chats.
                self._mark_if_damaged(error)
                self._tell(problem(disk_reason(error)))
            self._post(lambda: then(answer))

        self._jobs.put((False, work))

    @property
    def damaged(self) -> list[Path]:
        """The damaged files of chats that were set aside, the last one first."""
        return sorted(self.path.parent.glob(f"{self.path.stem}.damaged-*{self.path.suffix}"), reverse=True)

    @property
    def backup(self) -> Path | None:
        """The copy that was made before the file was changed to a newer version; None where there is none."""
        kept = backup_of(self.path)
        return kept if kept.exists() else None

    def mark_damaged(self) -> None:
        """Let the next start check the file whole, which sets a damaged one aside; raises OSError."""
        mark_of(self.path).touch()

    def bring_back(self, rescue: Rescue, progressed: Callable[[], None], then: Callable[[bool], None]) -> None:
        """Bring lost chats back in steps, so that others may use the store in between.

        ``then`` gets whether the disk took what there was.
        """

        def step(store: ChatStore) -> bool:
            rescue.step(store)
            self._saw_id(store.highest_id())
            return True

        def problem(reason: str) -> str:
            return tr("Chats cannot be saved in {parent}: {reason}", parent=self.path.parent, reason=reason)

        def done(is_taken: bool) -> None:
            if rescue.is_over or not is_taken:
                then(is_taken)
                return
            progressed()
            self._ask(step, done, False, problem)

        self._ask(step, done, False, problem)

    def close(self, timeout: float = 3.0) -> None:
        """Write what is left and stop; waits at most ``timeout`` seconds."""
        self._jobs.put(None)
        self._thread.join(timeout)

    def flush(self, timeout: float = 60.0) -> bool:
        """Wait until all jobs so far have run; for tests, also where other programs keep the cores."""
        done = threading.Event()
        self._jobs.put((False, lambda store: done.set()))
        return done.wait(timeout)

    def _run(self) -> None:
        store = self._open()
        self._saw_id(store.highest_id())
        while True:
            job = self._next_job()
            if job is None:
                break
            is_write, work = job
            if is_write:
                self._unsaved.append(work)
                # While the disk refuses, every new write would only repeat the same failure.
                if time.monotonic() < self._next_try:
                    continue
            if self._unsaved:
                self._save(store)
            if not is_write:
                work(store)
        self._save(store)
        store.close()

    def _next_job(self) -> tuple[bool, StoreJob] | None:
        if not self._unsaved:
            return self._jobs.get()
        try:
            return self._jobs.get(timeout=max(0.0, self._next_try - time.monotonic()))
        except queue.Empty:
            return False, lambda store: None

    def _save(self, store: ChatStore) -> None:
        while self._unsaved:
            try:
                store.mended(self._unsaved[0])
            except sqlite3.IntegrityError:
                # It refers to something that is no longer there: it can never be written.
                self._unsaved.popleft()
            except sqlite3.Error as error:
                self._failed(error)
                return
            except Exception as error:
                # It holds what no file of chats can hold: the others must be written all the same.
                self._unsaved.popleft()
                self._tell(tr("Something could not be saved ({error}).", error=error))
            else:
                self._unsaved.popleft()
                self._worked()

    def _failed(self, error: sqlite3.Error) -> None:
        is_news, self._next_try = not self._next_try, time.monotonic() + RETRY_SECONDS
        if not is_news:
            return
        parent, reason = self.path.parent, disk_reason(error)
        if isinstance(error, sqlite3.OperationalError):
            words = tr(
                "Chats cannot be saved in {parent} right now: {reason} Trying again every few seconds.",
                parent=parent,
                reason=reason,
            )
        else:  # the file is damaged, which does not pass
            self._mark_if_damaged(error)
            words = tr("Chats cannot be saved in {parent}: {reason}", parent=parent, reason=reason)
        self._tell(words)

    def _mark_if_damaged(self, error: Exception) -> None:
        if _is_of_damage(error) and not self.is_in_memory:
            with contextlib.suppress(OSError):
                self.mark_damaged()

    def _worked(self) -> None:
        if self._next_try:
            self._next_try = 0.0
            self._tell(None)

    def _tell(self, problem: str | None) -> None:
        self._post(lambda: self._on_problem(problem))

    def _open(self) -> ChatStore:
        try:
            return ChatStore(self.path)
        except StoreDamaged:
            return self._open_beside_damaged()
        except StoreTooNew:
            return self._open_in_memory(
                tr(
                    "The chats in {path} were written by a newer Slipstream: update it. {MEMORY_ONLY}",
                    path=self.path,
                    MEMORY_ONLY=MEMORY_ONLY,
                )
            )
        except (sqlite3.Error, OSError) as error:
            return self._open_in_memory(
                tr(
                    "Chats cannot be saved in {parent}: {reason} {MEMORY_ONLY}",
                    parent=self.path.parent,
                    reason=disk_reason(error),
                    MEMORY_ONLY=MEMORY_ONLY,
                )
            )

    def _open_in_memory(self, problem: str) -> ChatStore:
        self.is_in_memory = True
        self._tell(problem)
        return ChatStore(None)

    def _open_beside_damaged(self) -> ChatStore:
        try:
            kept = set_aside(self.path)
            store = ChatStore(self.path)
        except (sqlite3.Error, OSError, StoreDamaged) as error:
            return self._open_in_memory(
                tr(
                    "The chats in {path} are damaged and could not be set aside: {error}. {MEMORY_ONLY}",
                    path=self.path,
                    error=error,
                    MEMORY_ONLY=MEMORY_ONLY,
                )
            )
        self.is_new = True
        self._tell(tr("The file with your chats was damaged. It is kept as {kept}; a new one was started.", kept=kept))
        return store


def set_aside(path: Path) -> Path:
    """Move a damaged database and its side files out of the way; return where it is now."""
    kept = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}{path.suffix}")
    move_database(path, kept)
    forget_mark(path)
    return kept


def _is_of_damage(error: Exception) -> bool:
    return any(words in str(error).lower() for words in ("malformed", "not a database"))


def disk_reason(error: Exception) -> str:
    """Return why a disk refused, as a sentence."""
    if isinstance(error, PermissionError):
        return tr("the folder cannot be written to.")
    if isinstance(error, OSError):
        return f"{system_reason(error)}."
    text = str(error).lower()
    if "full" in text:
        return tr("the disk is full.")
    if "readonly" in text or "permission" in text:
        return tr("the folder cannot be written to.")
    if "unable to open" in text:
        return tr("the file cannot be opened or the folder cannot be written to.")
    if "locked" in text:
        return tr("another program holds the file.")
    if _is_of_damage(error):
        return tr(
            "the file is damaged. Start Slipstream again: where it finds the damage, it offers to bring back the chats."
        )
    return f"{error}."
