"""Encodes images on a thread of its own, so that steps go on meanwhile."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import weakref
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from core.images.image_file import decoded
from core.images.prompt_images import ImageRows
from core.llama.projector import EncodingFailed, Projector
from core.values.errors import SlipstreamError
from models.formatting.sentence import Sentence

_log = logging.getLogger(__name__)
# Embeddings of the latest images are kept, up to this many bytes: 1,000 rows of 4,096 numbers take 16 MB.
_KEPT_BYTES = 256 << 20
# On Linux the encoder's threads give way to steps (nice values, sched(7)): 5 is a third of a step's share of a core.
_NICE = 5


class Encoding:
    """An image that is being encoded. ``parts`` are its embeddings, an array of shape (n_rows, n_embd) for each chunk.

    ``error`` says why there are none.
    """

    def __init__(self, data: bytes) -> None:
        """``data`` is the image's file."""
        self.data = data
        self.parts: list[npt.NDArray[np.float32]] | None = None
        self.error: SlipstreamError | None = None

    @property
    def is_over(self) -> bool:
        """True where the embeddings are there, or will never be."""
        return self.parts is not None or self.error is not None

    @property
    def n_bytes(self) -> int:
        """Bytes of the embeddings."""
        return sum(part.nbytes for part in self.parts or ())


class ImageEncoder:
    """Encodes one image after the other. An image that no request holds any more is skipped."""

    def __init__(self, projector: Projector) -> None:
        """Take over ``projector``: ``close`` frees it."""
        self._projector = projector
        self._latest: weakref.WeakValueDictionary[bytes, Encoding] = weakref.WeakValueDictionary()
        self._kept: OrderedDict[bytes, Encoding] = OrderedDict()
        self._queue: queue.SimpleQueue[weakref.ref[Encoding] | None] = queue.SimpleQueue()
        self._arrived = threading.Event()
        self._thread = threading.Thread(target=self._work, name="images", daemon=True)
        self._thread.start()

    @property
    def is_causal(self) -> bool:
        """False where the rows of an image see each other, and must be evaluated together."""
        return self._projector.is_causal

    def encode(self, rows: ImageRows) -> Encoding:
        """Return the encoding of the image of ``rows``; it is dropped once no request holds it."""
        encoding = self._latest.get(rows.id)
        if encoding is None:
            encoding = self._latest[rows.id] = Encoding(rows.data)
            self._queue.put(weakref.ref(encoding))
        return encoding

    def embeddings(self, rows: ImageRows, encoding: Encoding) -> npt.NDArray[np.float32]:
        """Return the embeddings of ``rows``, shape (n_rows, n_embd), and remember those of the whole image."""
        assert encoding.parts is not None
        self._kept[rows.id] = encoding
        self._kept.move_to_end(rows.id)
        while len(self._kept) > 1 and sum(one.n_bytes for one in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return encoding.parts[rows.part]

    def wait(self, seconds: float) -> None:
        """Wait until an image is encoded, at most so long."""
        self._arrived.wait(seconds)
        self._arrived.clear()

    def close(self) -> None:
        """End the thread after its present image, and free the projector."""
        self._latest.clear()
        self._kept.clear()
        self._queue.put(None)
        self._thread.join()
        self._projector.close()

    def _work(self) -> None:
        _give_way()
        while (reference := self._queue.get()) is not None:
            encoding = reference()
            if encoding is None:
                continue  # its request was cancelled
            try:
                encoding.parts = self._projector.encode(decoded(encoding.data))
            except SlipstreamError as error:
                encoding.error = error
            except Exception as error:  # a request must end even after a bug here
                _log.exception("Encoding failed")
                encoding.error = EncodingFailed(Sentence("The image could not be encoded: {error}", error=error))
            encoding.data = b""
            del encoding
            self._arrived.set()


def _give_way() -> None:
    """Let other threads of this process go first if cores are short; llama.cpp's threads inherit this."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
