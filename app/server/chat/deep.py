"""Deep replies: several drafts at once, distilled into notes, refined into the answer.

Parallel-distill-refine (arXiv 2510.01123): the drafts run as rows of the same steps, so that they cost little more
time than one where steps are bound by memory bandwidth; the notes are bounded, so that the answer's prompt stays short
however much was thought. Drafts ride in the standard lane: the slowest of them holds up a reply that somebody waits
for.

    measuring the question with all instructions, evaluated once: how much room is left, and the drafts find it cached
    drafting  k replies to the question, sampled
    distilling notes on the question and the drafts: agreements, contradictions, the best parts
    refining  the answer, from the question and the notes; runs as any other reply
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.engine_bridge import EngineBridge
from app.server.calls.generation import new_id
from app.server.calls.schemas import nth_seed
from app.server.http.errors import RequestFailed, cancelled
from app.server.templates.chat_template import TemplateRenderer
from core.values.messages import (
    Ended,
    Failure,
    FailureKind,
    FinishReason,
    LoadedModel,
    Receipt,
    RequestEvent,
    Started,
    Token,
)
from core.values.request import Request, SamplingParams
from models.formatting.sentence import Sentence

# Fewer tokens than these are not worth a stage.
LEAST_DRAFT, LEAST_NOTES, LEAST_ANSWER = 24, 24, 24
_MOST_NOTES, _MOST_DRAFT = 512, 2_048
_NOTES_SHARE = 4
# More drafts than this repeat each other.
MOST_DRAFTS = 8
# A text that is read again can have a few tokens more than it was written with.
_SPARE = 8


@dataclass(frozen=True, slots=True)
class DeepPlan:
    """``n_drafts`` at once of ``draft_tokens`` each, notes of ``notes_tokens``; with 1 the answer is plain.

    ``reason`` says, then, why there are no drafts.
    """

    n_drafts: int
    draft_tokens: int = 0
    notes_tokens: int = 0
    reason: str | None = None

    @property
    def is_plain(self) -> bool:
        """True where the question is answered at once."""
        return self.n_drafts < 2


@dataclass(frozen=True, slots=True)
class DeepLimits:
    """What is available: ``n_fixed`` tokens of question and instructions, None where not even these fit the context.

    ``n_ctx`` bounds a request, ``n_cells`` all of them; ``cheap_rows`` are the rows that a step takes for little more
    time than one; ``max_tokens`` is the user's limit.
    """

    n_ctx: int
    n_cells: int
    n_fixed: int | None
    n_free_slots: int
    cheap_rows: int
    max_tokens: int | None = None


def plan_deep(now: DeepLimits) -> DeepPlan:
    """Return the plan: as many drafts as are nearly free, as long as they can all be read together."""
    room = now.n_ctx - now.n_fixed - _SPARE if now.n_fixed is not None else 0
    notes = min(max(room // _NOTES_SHARE, LEAST_NOTES), _MOST_NOTES)
    for_drafts = room - notes
    by_context = min(for_drafts // LEAST_DRAFT, now.n_cells // ((now.n_fixed or now.n_ctx) + LEAST_DRAFT))
    if for_drafts < LEAST_ANSWER or by_context < 2:
        return DeepPlan(1, reason=Sentence("the context has no room for drafts beside the question"))
    if now.n_free_slots < 2:
        return DeepPlan(1, reason=Sentence("no slot is free for a second draft"))
    if now.cheap_rows < 2:
        return DeepPlan(
            1, reason=Sentence("a second draft at once would take about as long as another reply on this machine")
        )
    n_drafts = min(by_context, now.n_free_slots, now.cheap_rows, MOST_DRAFTS)
    longest = min(for_drafts // n_drafts, now.n_cells // n_drafts - (now.n_fixed or 0), _MOST_DRAFT)
    draft = max(min(longest, now.max_tokens or longest), 1)
    # Notes that are longer than what they are about would be another draft.
    return DeepPlan(n_drafts, draft, min(notes, max(draft, LEAST_NOTES)))


_DISTIL = (
    "\n\n---\nBelow are {n} drafts of an answer to the message above. Do not answer it yet. Write short notes: what "
    "the drafts agree on, where they contradict each other and which is right, their best parts, and what they miss."
)
_DRAFT = "\n\nDraft {number}:\n{text}"
_REFINE = (
    "\n\n---\nNotes on earlier drafts of an answer:\n{notes}\n\nNow answer the message above these notes. Use what is "
    "right in them, and do not mention notes or drafts."
)
# Drafts that are all the same would tell nothing.
_LEAST_TEMPERATURE = 0.7
_PROGRESS_SECONDS = 0.25
_GREEDY = SamplingParams(temperature=0)


@dataclass(frozen=True, slots=True)
class DeepReplyProgress:
    """How far a deep reply is. ``stage`` is drafting, distilling, refining, or plain with a ``reason``.

    ``n_tokens`` counts what was generated so far, in all stages; ``seconds`` since the request began.
    """

    stage: str
    n_drafts: int
    n_drafts_done: int
    n_tokens: int
    seconds: float
    reason: str | None = None

    def wire(self) -> dict[str, Any]:
        """Return the object that goes into a chunk."""
        found = {
            "stage": self.stage,
            "drafts": self.n_drafts,
            "drafts_done": self.n_drafts_done,
            "tokens": self.n_tokens,
            "seconds": round(self.seconds, 3),
        }
        return found if self.reason is None else found | {"reason": self.reason}


progress_listener: ContextVar[Callable[[DeepReplyProgress], None] | None] = ContextVar("deep", default=None)
"""Who is told how far the deep reply of this task is, where nobody reads it as a stream."""


@dataclass(slots=True)
class DeepPart:
    """One request behind a deep reply, with the text that has come of it."""

    request: Request
    n_prompt: int = 0
    pieces: list[tuple[str, int]] = field(default_factory=list)
    end: Ended | None = None

    def take(self, event: RequestEvent) -> None:
        """Take what happened."""
        if type(event) is Started:
            self.n_prompt = event.n_prompt
        elif type(event) is Token:
            self.pieces.append((event.text, event.n))
        elif type(event) is Ended:
            self.pieces.append((event.text, 0))
            self.end = event

    @property
    def n_tokens(self) -> int:
        """Tokens so far."""
        return sum(n for _, n in self.pieces)

    @property
    def failure(self) -> Failure | None:
        """Why it failed, None where it did not."""
        return self.end.failure if self.end is not None and self.end.reason is FinishReason.FAILED else None

    def text(self, n_tokens: int | None = None) -> str:
        """Return the text, of the first ``n_tokens`` tokens only where that is given."""
        left, parts = n_tokens, []
        for text, n in self.pieces:
            if left is not None:
                if n > left:
                    break
                left -= n
            parts.append(text)
        return "".join(parts).strip()


@dataclass(frozen=True, slots=True)
class StageTiming:
    """What one stage took, and ``texts``, what it wrote, where nobody reads the reply as a stream."""

    name: str
    seconds: float
    receipts: Sequence[Receipt]
    texts: tuple[str, ...] = ()

    def wire(self) -> dict[str, Any]:
        """Return the object that goes beside the timings."""
        told = {
            "stage": self.name,
            "ms": round(self.seconds * 1_000, 3),
            "prompt_tokens": sum(receipt.n_prompt for receipt in self.receipts[:1]),
            "completion_tokens": sum(receipt.n_generated for receipt in self.receipts),
        }
        return told | {"texts": list(self.texts)} if self.texts else told


class DeepReply:
    """The stages before the answer. ``answer`` is the request of the last one, once ``think`` is over."""

    def __init__(
        self,
        body: ChatCompletionBody,
        question: Request,
        bridge: EngineBridge,
        renderer: TemplateRenderer,
        model: LoadedModel,
    ) -> None:
        """``question`` is the request as it would be answered plainly."""
        self.answer = question
        self.stages: list[StageTiming] = []
        self.plan = DeepPlan(1)
        self.n_used = 0
        self._body, self._question = body, question
        self._bridge, self._renderer, self._model = bridge, renderer, model
        self._began = time.monotonic()
        self._n_done = self._n_tokens = 0
        self._listener = progress_listener.get()

    async def think(self) -> AsyncGenerator[DeepReplyProgress, None]:
        """Run the stages before the answer; yield how far they are.

        Raises RequestFailed where all drafts fail, or the notes. Whatever runs when this is closed is cancelled.
        """
        self.plan = plan_deep(await self._conditions())
        if self.plan.is_plain:
            yield self._progress("plain")
            return
        drafts = [DeepPart(self.draft(index)) for index in range(self.plan.n_drafts)]
        async with aclosing(self._stage("drafting", drafts)) as drafting:
            async for progress in drafting:
                yield progress
        texts = self._usable(drafts)
        notes = ""
        async with aclosing(self._distil(texts)) as distilling:
            async for news in distilling:
                if isinstance(news, DeepReplyProgress):
                    yield news
                else:
                    notes = news
        # A model that has nothing to note: the best that is there is a draft.
        best = max(drafts, key=lambda draft: draft.n_tokens).text(self.plan.notes_tokens)
        self.answer = await self._refined(notes or best)
        yield self._progress("refining")

    def timings(self, receipt: Receipt) -> dict[str, Any]:
        """Return what a deep reply tells beside the timings of its last stage, whose receipt is given."""
        stages = [*self.stages, StageTiming("refining", receipt.total, [receipt])] if self.stages else []
        told = {"drafts": self.plan.n_drafts, "drafts_used": self.n_used, "stages": [stage.wire() for stage in stages]}
        return {"deep": told if self.plan.reason is None else told | {"reason": self.plan.reason}}

    def usage(self, usage: dict[str, Any]) -> dict[str, Any]:
        """Return the usage of the answer with that of the stages before it; a prompt that drafts share counts once."""
        prompts = [stage.receipts[0] for stage in self.stages if stage.receipts]
        n_prompt = usage["prompt_tokens"] + sum(receipt.n_prompt for receipt in prompts)
        n_hidden = sum(receipt.n_generated for stage in self.stages for receipt in stage.receipts)
        n_completion = usage["completion_tokens"] + n_hidden
        n_cached = usage["prompt_tokens_details"]["cached_tokens"] + sum(receipt.n_cached for receipt in prompts)
        return {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_completion,
            "total_tokens": n_prompt + n_completion,
            "prompt_tokens_details": usage["prompt_tokens_details"] | {"cached_tokens": n_cached},
            "completion_tokens_details": {"reasoning_tokens": n_hidden},
        }

    async def _conditions(self) -> DeepLimits:
        """Return what there is to plan with; evaluates the question with all instructions to know their length."""
        everything = _DISTIL.format(n=1) + _REFINE.format(notes="")
        drafts = "".join(_DRAFT.format(number=number, text="") for number in range(1, 10))
        prompt = await self._prompt(everything + drafts)
        part = self._part(prompt, 0)
        async with aclosing(self._run([part])) as events:
            async for _ in events:
                pass
        if part.failure is not None and part.failure.kind is not FailureKind.CONTEXT_LENGTH:
            raise RequestFailed(part.failure)
        snapshot = self._bridge.snapshot
        return DeepLimits(
            n_ctx=self._model.n_ctx,
            n_cells=self._model.n_cells,
            n_fixed=None if part.failure is not None else part.n_prompt,
            n_free_slots=self._model.n_slots - self._bridge.n_active - self._bridge.n_queued,
            cheap_rows=snapshot.cheap_rows if snapshot is not None else 1,
            max_tokens=self._question.max_tokens,
        )

    def _part(self, prompt: str, max_tokens: int) -> DeepPart:
        """Return a part that is not sampled: with the question's salt and adapters it finds the question cached."""
        own = self._question
        return DeepPart(Request(new_id("deep"), prompt, max_tokens, sampling=_GREEDY, lora=own.lora, salt=own.salt))

    def draft(self, index: int) -> Request:
        """Return the request of a draft, counted from 0."""
        sampling = self._question.sampling
        seed = index if sampling.seed is None and sampling.is_greedy else sampling.seed
        own = replace(
            sampling,
            # The first one is what the plain answer would be.
            temperature=max(sampling.temperature, _LEAST_TEMPERATURE) if index else sampling.temperature,
            seed=nth_seed(seed, index) if seed is not None else None,
            ignore_eos=False,
            logprobs=False,
            top_logprobs=0,
        )
        return replace(
            self._question,
            id=new_id("deep"),
            max_tokens=self.plan.draft_tokens,
            sampling=own,
            stop=(),
            constraint=None,
            markers=(),
        )

    def _usable(self, drafts: Sequence[DeepPart]) -> list[DeepPart]:
        """Return the drafts that say something. Raises RequestFailed where all failed."""
        usable = [draft for draft in drafts if draft.failure is None and draft.text()]
        failures = [draft.failure for draft in drafts if draft.failure is not None]
        if not usable and failures:
            raise RequestFailed(failures[0])
        self.n_used = len(usable)
        return usable

    async def _distil(self, drafts: Sequence[DeepPart]) -> AsyncGenerator[DeepReplyProgress | str, None]:
        """Yield how far the notes are, then the notes."""
        n_each = self.plan.draft_tokens
        while drafts:
            parts = [_DRAFT.format(number=i, text=draft.text(n_each)) for i, draft in enumerate(drafts, 1)]
            prompt = await self._prompt(_DISTIL.format(n=len(drafts)) + "".join(parts))
            notes = self._part(prompt, self.plan.notes_tokens)
            async with aclosing(self._stage("distilling", [notes])) as distilling:
                async for progress in distilling:
                    yield progress
            if notes.failure is None:
                yield notes.text()
                return
            if notes.failure.kind is not FailureKind.CONTEXT_LENGTH or n_each < 2:
                raise RequestFailed(notes.failure)
            # Read again, the drafts have more tokens than they were written with.
            n_each //= 2
        yield ""

    async def _refined(self, notes: str) -> Request:
        return replace(self._question, prompt=await self._prompt(_REFINE.format(notes=notes)))

    async def _prompt(self, more: str) -> str:
        """Return the prompt with ``more`` below what the user said last: all before that is cached."""
        variables = self._body.template_variables()
        *before, last = variables["messages"]
        messages = [*before, last | {"content": f"{last['content']}{more}"}]
        return await self._renderer.render(self._model, variables | {"messages": messages})

    async def _stage(self, name: str, parts: Sequence[DeepPart]) -> AsyncGenerator[DeepReplyProgress, None]:
        """Run the requests of a stage; yield how far they are."""
        began = said_at = time.monotonic()
        n_before, n_done = self._n_tokens, -1
        async with aclosing(self._run(parts)) as events:
            yield self._progress(name)
            async for _ in events:
                self._n_tokens = n_before + sum(part.n_tokens for part in parts)
                n_now = sum(part.end is not None for part in parts)
                if name == "drafting":
                    self._n_done = n_now
                if n_now != n_done or time.monotonic() - said_at >= _PROGRESS_SECONDS:
                    n_done, said_at = n_now, time.monotonic()
                    yield self._progress(name)
        receipts = [part.end.receipt for part in parts if part.end is not None and part.failure is None]
        written = [part for part in parts if part.failure is None] if self.has_listener else []
        texts = tuple(text for part in written if (text := part.text()))
        self.stages.append(StageTiming(name, time.monotonic() - began, receipts, texts))

    async def _run(self, parts: Sequence[DeepPart]) -> AsyncGenerator[None, None]:
        """Run requests side by side; yield whenever something has come of them. What runs at the end is cancelled.

        Raises ApiError where one of them was ended from elsewhere.
        """
        by_id = {part.request.id: part for part in parts}
        channel = self._bridge.open([part.request for part in parts], streams=True)
        try:
            while not channel.is_over:
                for event in await channel.take():
                    by_id[event.request_id].take(event)
                    if type(event) is Ended and event.reason is FinishReason.CANCELLED:
                        raise cancelled()
                yield
        finally:
            self._bridge.close(channel)

    @property
    def has_listener(self) -> bool:
        """True where somebody follows the stages, the last one too."""
        return self._listener is not None

    def note_answer(self, n_tokens: int) -> None:
        """Tell the listener how many tokens of the answer there are."""
        self._progress("plain" if self.plan.is_plain else "refining", n_tokens)

    def _progress(self, stage: str, n_answer: int = 0) -> DeepReplyProgress:
        progress = DeepReplyProgress(
            stage,
            self.plan.n_drafts,
            self._n_done,
            self._n_tokens + n_answer,
            time.monotonic() - self._began,
            self.plan.reason,
        )
        if self._listener is not None:
            self._listener(progress)
        return progress
