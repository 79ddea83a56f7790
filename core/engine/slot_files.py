"""Saves the text of a slot to a file, restores or erases it: llama-server's actions at ``/slots``."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from core.kv_cache.disk_cache import Blob, NotASegmentFile, SegmentHeader, read_segment, write_segment
from core.kv_cache.prefix_tree import TokenIds
from core.kv_cache.segment_store import DiskReadWait, segment_id
from core.kv_cache.slot_table import SlotTable
from core.values.errors import BadRequest
from core.values.messages import Ended, Failure, FailureKind, FinishReason, RequestEvent
from core.values.request import SlotDone, SlotRequest
from models.formatting.system_error import system_reason

_log = logging.getLogger(__name__)


class SlotFiles:
    """Saves, restores and erases slots between steps. ``prepare`` may be called from any thread, the rest from one.

    A file holds a whole text, in the format of the disk cache. It is read and written on a thread of its own, so
    running requests wait only while the cells are copied.
    """

    def __init__(self, slots: SlotTable, n_ctx: int) -> None:
        """``n_ctx`` is the context of one request in tokens."""
        self._slots = slots
        self._n_ctx = n_ctx
        self.n_open = 0  # requests that have not ended
        # Requests with what is to be done for them on the engine's thread, and the events of those that have ended.
        self._todo: queue.SimpleQueue[tuple[SlotRequest, Callable[[], None]]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[RequestEvent, ...]] = queue.SimpleQueue()
        self._reading: list[tuple[SlotRequest, DiskReadWait]] = []  # texts to be saved that only the disk has
        self._writing = threading.Lock()  # two files of one name must not be written at the same time

    @property
    def needs_step(self) -> bool:
        """True if there is something to do on the engine's thread."""
        return bool(self._reading) or not self._todo.empty()

    def prepare(self, request: SlotRequest) -> SlotRequest:
        """Check a request. Raises BadRequest."""
        if not 0 <= request.slot < len(self._slots):
            known = f"0 to {len(self._slots) - 1}"
            raise BadRequest(f"There is no slot {request.slot} here: the slots are {known}.", param="id_slot")
        if self._slots.store.key is None and request.action != "erase":
            raise BadRequest(
                "Texts that were computed with LoRA adapters are not saved to files: start the server without --lora."
            )
        return request

    def submit(self, request: SlotRequest) -> None:
        """Begin a request."""
        self.n_open += 1
        if request.action == "restore":
            threading.Thread(target=self._read, args=(request,), name="slot-reader", daemon=True).start()
        else:
            self._todo.put((request, partial(self._save if request.action == "save" else self._erase, request)))

    def step(self) -> list[RequestEvent]:
        """Do what is to be done now; return the events of requests that have ended."""
        self._take_read()
        while not self._todo.empty():
            request, deed = self._todo.get()
            if not self._slots.slots[request.slot].is_free:
                self._fail(request, f"Slot {request.slot} is at work: try again when it is free.", "id_slot")
                continue
            try:
                deed()
            except Exception as error:  # a request must end, as where memory for a copy of the cells is short
                self._fail_unforeseen(request, error)
        events: list[RequestEvent] = []
        while not self._done.empty():
            self.n_open -= 1
            events += self._done.get()
        return events

    # -- on the engine's thread ---------------------------------------------------------------------------------

    def _take_read(self) -> None:
        if self._reading:
            self._slots.store.poll()
        for request, read in [one for one in self._reading if one[1].is_over]:
            self._reading.remove((request, read))
            self._todo.put((request, partial(self._save, request, read)))

    def _save(self, request: SlotRequest, read: DiskReadWait | None = None) -> None:
        if read is None and (wanted := self._slots.read_left(request.slot)) is not None:
            self._reading.append((request, wanted))
            return
        began = time.perf_counter()
        left = self._slots.left_in(request.slot, read)
        if left is None:
            what = f"Slot {request.slot} holds no text, or no longer"
            self._fail(request, f"{what}: send its prompt with id_slot {request.slot}, then save it.", "id_slot")
            return
        threading.Thread(target=self._write, args=(request, *left, began), name="slot-writer", daemon=True).start()

    def _restore(self, request: SlotRequest, text: TokenIds, blob: Blob, read: SlotDone) -> None:
        began = time.perf_counter()
        if self._slots.put_into(request.slot, text, blob, request.salt):
            self._end(replace(read, seconds=read.seconds + time.perf_counter() - began))
        else:
            what = f"{Path(request.path).name} finds no room in the KV cache"
            self._fail(request, f"{what}: try again when fewer requests run.", "filename")

    def _erase(self, request: SlotRequest) -> None:
        self._end(SlotDone(request.id, self._slots.erase(request.slot)))

    # -- on threads of their own --------------------------------------------------------------------------------

    def _read(self, request: SlotRequest) -> None:
        began, path, key = time.perf_counter(), Path(request.path), self._slots.store.key
        assert key is not None
        try:
            if not path.is_file():
                self._fail(request, f"There is no file {path.name} in the folder of --slot-save-path.", "filename")
                return
            header, blob = read_segment(path, key)
            n_tokens, n_bytes = len(header.tokens), path.stat().st_size
        except NotASegmentFile as error:
            self._fail(request, f"{path.name} cannot be restored: {error}.", "filename")
        except OSError as error:
            self._fail(request, f"{path.name} cannot be read: {system_reason(error)}.", "filename")
        except Exception as error:  # as where memory is short
            self._fail_unforeseen(request, error)
        else:
            if header.start or n_tokens > self._n_ctx:
                what = f"its text has {header.end} tokens, and a request has a context of {self._n_ctx} here"
                self._fail(request, f"{path.name} cannot be restored: {what}.", "filename")
                return
            read = SlotDone(request.id, n_tokens, n_bytes, time.perf_counter() - began)
            self._todo.put((request, partial(self._restore, request, header.tokens, blob, read)))

    def _write(self, request: SlotRequest, text: TokenIds, blob: Blob, began: float) -> None:
        name = segment_id(None, 0, text, is_whole=True)
        header = SegmentHeader(name, None, 0, text, blob.nbytes, is_whole=True)
        assert self._slots.store.key is not None
        try:
            with self._writing:
                n_bytes = write_segment(Path(request.path), self._slots.store.key, header, blob)
        except OSError as error:
            self._fail(request, f"{Path(request.path).name} cannot be written: {system_reason(error)}.")
        except Exception as error:
            self._fail_unforeseen(request, error)
        else:
            self._end(SlotDone(request.id, len(text), n_bytes, time.perf_counter() - began))

    # -- the end of a request, on any thread --------------------------------------------------------------------

    def _end(self, answer: SlotDone) -> None:
        self._done.put((answer, Ended(answer.request_id, FinishReason.STOP)))

    def _fail(self, request: SlotRequest, sentence: str, param: str | None = None) -> None:
        """End a request with a sentence; without a ``param`` it is not the request's fault."""
        kind = FailureKind.INTERNAL if param is None else FailureKind.BAD_REQUEST
        self._done.put((Ended(request.id, FinishReason.FAILED, failure=Failure(kind, sentence, param)),))

    def _fail_unforeseen(self, request: SlotRequest, error: Exception) -> None:
        _log.error("Slot %s: %s failed", request.slot, request.action, exc_info=error)
        reason = str(error) or type(error).__name__
        self._fail(request, f"The server could not {request.action} slot {request.slot}: {reason}.")
