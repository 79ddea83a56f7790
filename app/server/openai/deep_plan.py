"""How many drafts a deep reply gets, and how many tokens each of its stages has. Pure."""

from __future__ import annotations

from dataclasses import dataclass

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
    """What there is: ``n_fixed`` tokens of question and instructions, None where not even these fit the context.

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
        return DeepPlan(1, reason="the context has no room for drafts beside the question")
    if now.n_free_slots < 2:
        return DeepPlan(1, reason="no slot is free for a second draft")
    if now.cheap_rows < 2:
        return DeepPlan(1, reason="a second draft at once would take about as long as another reply on this machine")
    n_drafts = min(by_context, now.n_free_slots, now.cheap_rows, MOST_DRAFTS)
    longest = min(for_drafts // n_drafts, now.n_cells // n_drafts - (now.n_fixed or 0), _MOST_DRAFT)
    draft = max(min(longest, now.max_tokens or longest), 1)
    # Notes that are longer than what they are about would be another draft.
    return DeepPlan(n_drafts, draft, min(notes, max(draft, LEAST_NOTES)))
