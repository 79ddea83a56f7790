"""How many drafts there are, and how long each stage may be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.server.chat.deep import LEAST_ANSWER, LEAST_DRAFT, LEAST_NOTES, MOST_DRAFTS, DeepLimits, plan_deep

ROOMY = DeepLimits(n_ctx=8192, n_cells=8 * 8192, n_fixed=200, n_free_slots=8, cheap_rows=6)


def test_as_many_drafts_as_are_nearly_free() -> None:
    assert plan_deep(ROOMY).n_drafts == 6
    assert plan_deep(replace(ROOMY, n_free_slots=3)).n_drafts == 3
    assert plan_deep(replace(ROOMY, cheap_rows=16, n_free_slots=16)).n_drafts == MOST_DRAFTS
    assert plan_deep(ROOMY).reason is None


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (replace(ROOMY, cheap_rows=1), "as long as another reply"),
        (replace(ROOMY, n_free_slots=1), "no slot"),
        (replace(ROOMY, n_free_slots=-3), "no slot"),
        (replace(ROOMY, n_ctx=256), "no room"),
        (replace(ROOMY, n_fixed=None), "no room"),
        (replace(ROOMY, n_cells=400), "no room"),
    ],
)
def test_where_drafts_do_not_pay_the_answer_is_plain_and_says_why(now: DeepLimits, says: str) -> None:
    plan = plan_deep(now)
    assert plan.is_plain
    assert says in (plan.reason or "")


def test_no_draft_is_longer_than_the_answer_may_be() -> None:
    assert plan_deep(replace(ROOMY, max_tokens=40)).draft_tokens == 40


def test_notes_are_no_longer_than_a_draft() -> None:
    assert plan_deep(replace(ROOMY, max_tokens=40)).notes_tokens == 40
    assert plan_deep(replace(ROOMY, max_tokens=4)).notes_tokens == LEAST_NOTES
    assert plan_deep(ROOMY).notes_tokens < plan_deep(ROOMY).draft_tokens


def test_every_stage_fits_whatever_the_context() -> None:
    for n_ctx in range(64, 4096, 37):
        for n_fixed in (20, 90, 300, 1000):
            for slots in (2, 4, 16):
                for n_cells in (n_ctx, 2 * n_ctx, slots * n_ctx):
                    plan = plan_deep(DeepLimits(n_ctx, n_cells, n_fixed, slots, 16))
                    if plan.is_plain:
                        continue
                    assert plan.draft_tokens >= LEAST_DRAFT
                    assert n_fixed + plan.n_drafts * plan.draft_tokens + plan.notes_tokens < n_ctx
                    assert n_fixed + plan.notes_tokens + LEAST_ANSWER < n_ctx
                    assert plan.n_drafts * (n_fixed + plan.draft_tokens) <= n_cells
