"""Steps that evaluate rows of images, in turn with the steps of all others."""

from __future__ import annotations

from collections.abc import Callable

from core.engine.committer import RequestFinisher
from core.llama.projector import EncodingFailed
from core.scheduler.images import ImageEncoder, ImageRows
from core.scheduler.planner import Share
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.values.errors import BadRequest, SlipstreamError
from core.values.messages import Failure, FailureKind, FinishReason, RequestEvent
from models.formatting.sentence import Sentence


class ImageSteps:
    """Has the images of running requests encoded, and says whose image a step evaluates.

    llama.cpp takes tokens or embeddings in a batch, not both. So an image has steps of its own, in turn with the steps
    of all others.
    """

    def __init__(self, encoder: ImageEncoder, scheduler: Scheduler, finisher: RequestFinisher) -> None:
        self.encoder = encoder
        self._scheduler = scheduler
        self._finisher = finisher
        self._was_last = False

    def prepare(self, events: list[RequestEvent], now: float) -> list[Sequence]:
        """Start encoding the images of running requests; return the requests that go on with text."""
        texts, broken = [], []
        for sequence in self._scheduler.running:
            rows = sequence.next_image
            if rows is None:
                texts.append(sequence)
                continue
            for one in sequence.images:
                if one.end > sequence.n_past and one.id not in sequence.encodings:
                    sequence.encodings[one.id] = self.encoder.encode(one)
            error = _error(sequence, rows)
            if error is not None:
                broken.append((sequence, error))
            elif rows.start > sequence.n_past:
                texts.append(sequence)
        for sequence, error in broken:
            is_own = isinstance(error, BadRequest)
            kind = FailureKind.BAD_REQUEST if is_own else FailureKind.INTERNAL
            failure = Failure(kind, error.message, "messages" if is_own else None)
            self._finisher.finish(sequence, FinishReason.FAILED, events, now, failure)
        return texts

    def next_share(self, n_most: int, *, is_alone: bool, may_run: Callable[[Sequence, int], bool]) -> Share | None:
        """Return the image rows that the next step evaluates, at most ``n_most`` where they may be split.

        None if no image is encoded, ``may_run`` says no, or it is the turn of text. ``is_alone`` says that no text is
        running.
        """
        was_last, self._was_last = self._was_last, False
        if was_last and not is_alone:
            return None
        ready = [
            sequence
            for sequence in self._scheduler.running
            if (rows := sequence.image) is not None and _is_there(sequence, rows)
        ]
        for sequence in sorted(ready, key=lambda one: (one.lane.rank, one.order)):
            rows = sequence.image
            assert rows is not None
            n_left = rows.end - sequence.n_past
            n_rows = min(n_left, n_most) if self.encoder.is_causal else n_left
            if may_run(sequence, n_rows):
                self._was_last = True
                return Share(sequence, n_rows)
        return None


def _is_there(sequence: Sequence, rows: ImageRows) -> bool:
    """Return whether the embeddings of ``rows`` can be had; the encoder may have failed since ``prepare``."""
    return sequence.encodings[rows.id].parts is not None and _error(sequence, rows) is None


def _error(sequence: Sequence, rows: ImageRows) -> SlipstreamError | None:
    """Return why the embeddings of ``rows`` cannot be had; None if they are there or still to come."""
    encoding = sequence.encodings[rows.id]
    if encoding.parts is None:
        return encoding.error
    n_rows = rows.end - rows.start
    if rows.part < len(encoding.parts) and len(encoding.parts[rows.part]) == n_rows:
        return None
    return EncodingFailed(Sentence("The projector made other rows of the image than it had announced."))
