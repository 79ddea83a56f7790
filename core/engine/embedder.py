"""Texts to vectors, in batches of their own between the steps of chats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from core.cost.threads import BatchThreads
from core.llama.context import DecodeStatus, EmbeddingContext, EmbeddingOptions, Rows
from core.llama.model import Model
from core.scheduler.input_processor import PreparedRequest, checked_tokens, convert
from core.scheduler.scheduler import ABOVE_BATCH, WaitingQueue
from core.values.engine_options import Pooling
from core.values.errors import BadRequest, InputTooLong
from core.values.messages import Answer, Ended, Failure, FailureKind, FinishReason, RequestEvent, Snapshot, StepRequest
from core.values.request import DetokenizeRequest, Embedded, EmbedRequest, Lane, SlotRequest, TokenizeRequest

MAX_TEXTS = 64
"""Texts in one batch: more than a few dozen gain nothing, and a hybrid model keeps a state for each."""
_FIRST_CONTEXT = 512  # tokens; longer texts make it longer
_TIME_WEIGHT = 0.2  # of the last batch in the mean time of a row
CANNOT_WRITE = "This model turns texts into vectors and cannot write. Name a model that generates text."
_INT16_RANGE = 32_760.0  # as in common_embd_normalize


@dataclass(frozen=True, slots=True)
class PreparedEmbedding:
    """A request for vectors with the tokens of its inputs, each of shape (n,)."""

    request: EmbedRequest
    tokens: tuple[npt.NDArray[np.int32], ...]


Prepared = PreparedRequest | PreparedEmbedding | SlotRequest


@dataclass(slots=True)
class _EmbeddingJob:
    """A request, how many of its texts were begun, and the vectors of those that are done."""

    prepared: PreparedEmbedding
    id: str
    lane: Lane
    waiting_since: float
    n_begun: int = 0
    vectors: list[tuple[bytes, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _EmbeddingText:
    """A text in the batch; ``n_done`` of its tokens were evaluated."""

    job: _EmbeddingJob
    tokens: npt.NDArray[np.int32]
    sequence: int
    n_done: int = 0

    def rows(self, n_rows: int) -> Rows:
        """Return its next rows, and count them as done."""
        start, self.n_done = self.n_done, self.n_done + n_rows
        return Rows(self.tokens[start : self.n_done], start, self.sequence)

    @property
    def n_before_last(self) -> int:
        """Tokens that are left before the last."""
        return len(self.tokens) - 1 - self.n_done


class Embedder:
    """Runs requests for vectors on one model. ``prepare`` and ``answer`` may be called from any thread.

    Its context is opened when the first request is prepared, and a longer one when a text needs it.
    """

    def __init__(
        self,
        model: Model,
        options: EmbeddingOptions,
        open_context: Callable[[EmbeddingOptions], EmbeddingContext],
        threads: BatchThreads | None,
    ) -> None:
        """``options`` are those for the longest input; ``threads`` None leaves its threads as they are.

        ``close`` frees ``model`` only if ``owns_model`` is set.
        """
        self.model, self.vocab, self.pooling, self.n_ctx = model, model.vocab, options.pooling, options.n_tokens
        self.owns_model = False
        self._options = options
        self._open_context = open_context
        self._n_embd = model.n_embd_out
        self._rerank_template = model.rerank_template
        self.clock = time.perf_counter
        self._opening = threading.Lock()
        self._context: EmbeddingContext | None = None
        # Opened by the input thread for a longer text; taken by the engine's thread between batches.
        self._longer: EmbeddingContext | None = None
        self._jobs: dict[str, _EmbeddingJob] = {}
        # Jobs with texts to begin: each begins one in its turn, so that a long job holds up no short one.
        self._turns: WaitingQueue[_EmbeddingJob] = WaitingQueue()
        self._batch: list[_EmbeddingText] = []
        self._cancelled: list[str] = []
        self._row_seconds = 0.0
        self._threads = threads
        self.n_steps = 0

    # -- on any thread ------------------------------------------------------------------------------------------

    def prepare(self, request: StepRequest) -> PreparedEmbedding:
        """Tokenise and check; raises BadRequest, InputTooLong, and LoadFailed where memory is short."""
        if not isinstance(request, EmbedRequest):
            raise BadRequest(CANNOT_WRITE, param="model")
        if (request.query is None) == (self.pooling == "rank"):
            raise BadRequest(_wrong_kind(self.pooling), param="model")
        if request.dimensions is not None and not 1 <= request.dimensions <= self._n_embd:
            sentence = f"dimensions must be between 1 and {self._n_embd}, not {request.dimensions}."
            raise BadRequest(sentence, param="dimensions")
        tokens = tuple(self._tokens(request, one) for one in request.inputs)
        for index, one in enumerate(tokens):
            if not len(one):
                raise BadRequest(f"Input {index} is empty: send at least one token of text.", param="input")
            if len(one) > self.n_ctx:
                raise InputTooLong(index, len(one), self.n_ctx)
        self._make_room(max(map(len, tokens)))
        return PreparedEmbedding(request, tokens)

    def answer(self, request: TokenizeRequest | DetokenizeRequest) -> Answer:
        """Return the answer to a request that needs no step; raises BadRequest."""
        return convert(request, self.vocab)

    def _tokens(self, request: EmbedRequest, text: str | tuple[int, ...]) -> npt.NDArray[np.int32]:
        if not isinstance(text, str):
            return checked_tokens(text, self.vocab, "input")
        if request.query is None:
            return self.vocab.tokenize(text)
        return self._pair(request.query, text)

    def _pair(self, query: str, document: str) -> npt.NDArray[np.int32]:
        """Return the tokens of a query with a document (llama-server's ``format_prompt_rerank``)."""
        vocab = self.vocab
        if self._rerank_template is not None:
            text = self._rerank_template.replace("{query}", query).replace("{document}", document)
            return vocab.tokenize(text, add_special=False)
        begin = [vocab.adds_begin] if vocab.adds_begin >= 0 else []
        texts = [vocab.tokenize(text, add_special=False, parse_special=False) for text in (query, document)]
        parts = [begin, texts[0], vocab.between_texts, texts[1], vocab.after_text]
        return np.concatenate([np.asarray(part, np.int32) for part in parts])

    def _make_room(self, n_tokens: int) -> None:
        """Open a context for a text of ``n_tokens``, unless there is one."""
        with self._opening:
            newest = self._longer or self._context
            if newest is not None and newest.n_tokens >= n_tokens:
                return
            n_wanted = _FIRST_CONTEXT
            while n_wanted < n_tokens:
                n_wanted *= 2
            opened = self._open_context(replace(self._options, n_tokens=min(n_wanted, self.n_ctx)))
            if self._longer is not None:
                self._longer.close()
            self._longer = opened

    # -- on the engine's thread ---------------------------------------------------------------------------------

    def submit(self, prepared: Prepared, submitted_at: float | None = None) -> None:
        """Queue a request."""
        assert isinstance(prepared, PreparedEmbedding)
        job = _EmbeddingJob(prepared, prepared.request.id, prepared.request.lane, self.clock())
        self._jobs[job.id] = job
        self._turns.append(job)

    def cancel(self, request_id: str) -> None:
        """End a request at the next step; unknown ids are ignored."""
        if request_id in self._jobs:
            self._cancelled.append(request_id)

    def share_cores(self, n_engines: int) -> None:
        """Use this engine's part of the cores while ``n_engines`` compute."""
        if self._threads is not None:
            self._threads.share(n_engines)

    @property
    def is_idle(self) -> bool:
        """True where a step would do nothing."""
        return not self._jobs

    @property
    def can_wait(self) -> bool:
        """True if only texts of the batch lane wait, and that lane was served lately: chats go first then."""
        if self._batch or self._cancelled or self._turns.next(ABOVE_BATCH):
            return False
        return all(self.clock() < self._turns.due_at(job) for job in self._turns.next())

    def step(self, longest: float | None = None) -> list[RequestEvent]:
        """Evaluate a batch, in ``longest`` seconds if the model can read texts in parts; return what happened."""
        events: list[RequestEvent] = []
        self._end_cancelled(events)
        context = self._newest_context()
        if context is None or self.is_idle:
            return events
        context.set_threads(self._options.n_threads if self._threads is None else self._threads.count)
        began, n_most = self.clock(), context.n_rows
        if longest is not None and self._row_seconds:
            n_most = min(max(1, int(longest / self._row_seconds)), n_most)
        if not self._batch:
            self._fill(context.n_tokens if context.reads_parts else n_most)
        status, n_rows, is_over = self._run(context, n_most)
        if status is not DecodeStatus.OK:
            self._fail(status, events)
        elif is_over:
            self._hand_out(context, events)
        if not self._batch:
            context.clear()
        self.n_steps += 1
        row_seconds = (self.clock() - began) / max(n_rows, 1)
        self._row_seconds += (_TIME_WEIGHT if self._row_seconds else 1.0) * (row_seconds - self._row_seconds)
        return events

    def _newest_context(self) -> EmbeddingContext | None:
        if self._longer is not None and not self._batch:
            with self._opening:
                before, self._context, self._longer = self._context, self._longer, None
            if before is not None:
                before.close()
        return self._context

    def _fill(self, n_tokens: int) -> None:
        """Put texts into the batch: at least one, and up to ``n_tokens`` tokens altogether."""
        while len(self._batch) < self._options.n_sequences and (first := self._turns.next()):
            job = first[0]
            tokens = job.prepared.tokens[job.n_begun]
            n_tokens -= len(tokens)
            if self._batch and n_tokens < 0:
                return
            self._turns.serve(job, self.clock())
            self._batch.append(_EmbeddingText(job, tokens, len(self._batch)))
            job.n_begun += 1
            if job.n_begun < len(job.prepared.tokens):
                self._turns.append(job)

    def _run(self, context: EmbeddingContext, n_most: int) -> tuple[DecodeStatus, int, bool]:
        """Evaluate the batch, or its next ``n_most`` rows; return how many rows, and whether it is done."""
        if not context.reads_parts:
            rows = [text.rows(len(text.tokens)) for text in self._batch]
            return context.run(rows), sum(len(text.tokens) for text in self._batch), True
        rows, n_left = [], n_most
        for text in self._batch:
            n_rows = min(text.n_before_last, n_left)
            if n_rows:
                rows.append(text.rows(n_rows))
                n_left -= n_rows
        status = context.run(rows, is_end=False) if rows else DecodeStatus.OK
        if status is not DecodeStatus.OK or any(text.n_before_last for text in self._batch):
            return status, n_most - n_left, False
        # The model's last layers and its output table are evaluated for these rows only.
        return context.run([text.rows(1) for text in self._batch]), n_most - n_left + len(self._batch), True

    def _hand_out(self, context: EmbeddingContext, events: list[RequestEvent]) -> None:
        every, first = (context.all_vectors() if self.pooling == "none" else None), 0
        for text in self._batch:
            job, n_tokens = text.job, len(text.tokens)
            found = context.vectors(text.sequence) if every is None else every[first : first + n_tokens]
            first += n_tokens
            job.vectors.append(tuple(row.tobytes() for row in self._shaped(found, job.prepared.request)))
            if job.id in self._jobs and len(job.vectors) == len(job.prepared.tokens):
                del self._jobs[job.id]
                counts = tuple(map(len, job.prepared.tokens))
                events += (Embedded(job.id, tuple(job.vectors), counts), Ended(job.id, FinishReason.STOP))
        self._batch = []

    def _shaped(self, vectors: npt.NDArray[np.float32], request: EmbedRequest) -> npt.NDArray[np.float32]:
        """Return the vectors cut and normalised as requested; those of single tokens, and scores, stay as they are."""
        if self.pooling in ("none", "rank"):
            return vectors
        cut = vectors[:, : request.dimensions]
        return (cut / _norms(cut, request.norm)).astype(np.float32)

    def _fail(self, status: DecodeStatus, events: list[RequestEvent]) -> None:
        failure = Failure(FailureKind.INTERNAL, f"llama.cpp could not compute the vectors ({status.name}).")
        for job in {text.job.id: text.job for text in self._batch}.values():
            self._drop(job)
            events.append(Ended(job.id, FinishReason.FAILED, failure=failure))
        self._batch = []

    def _end_cancelled(self, events: list[RequestEvent]) -> None:
        is_begun = bool(self._batch)
        for request_id in self._cancelled:
            job = self._jobs.get(request_id)
            if job is not None:
                self._drop(job)
                events.append(Ended(request_id, FinishReason.CANCELLED))
        self._cancelled.clear()
        if is_begun and not self._batch and self._context is not None:
            self._context.clear()  # what was read of it

    def _drop(self, job: _EmbeddingJob) -> None:
        del self._jobs[job.id]
        if job in self._turns:
            self._turns.remove(job)
        self._batch = [text for text in self._batch if text.job is not job]

    def write_back(self) -> float | None:
        """Vectors are not kept, so there is nothing to write."""
        return None

    def take_snapshot(self) -> Snapshot | None:
        """Vectors have no gauges."""
        return None

    def close(self) -> None:
        """Free the contexts, and the model if ``owns_model`` is set."""
        for context in (self._context, self._longer):
            if context is not None:
                context.close()
        self._context = self._longer = None
        if self.owns_model:
            self.model.close()


def _norms(vectors: npt.NDArray[np.float32], norm: int) -> npt.NDArray[np.float64]:
    """Return the norm of each row (``common_embd_normalize``), shape (n_rows, 1); infinity for one of zeros."""
    sizes = np.abs(vectors.astype(np.float64))
    if norm < 0:
        return np.ones((len(sizes), 1))
    if norm == 0:
        norms = sizes.max(axis=1, keepdims=True) / _INT16_RANGE
    else:
        norms = (sizes**norm).sum(axis=1, keepdims=True) ** (1.0 / norm)
    return np.where(norms > 0, norms, np.inf)


def _wrong_kind(pooling: Pooling) -> str:
    if pooling == "rank":
        return "This model scores documents for a query and gives no vectors: use /v1/rerank, or name another model."
    return "This model gives vectors and no scores: name a reranker, or use /v1/embeddings."
