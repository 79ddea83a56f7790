"""A job as the server tells of it: the row that shows it, and what the lines of its files say."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from models.formatting.figures import duration
from models.formatting.json_values import fitting
from ui.client.problems import sentence_of
from ui.client.speeds import STAGES, DeepProgress, deep_progress, share_of
from ui.language import dotted, of_data, tr
from ui.widgets.action_rows import ActionRow

PAUSE, RESUME, CANCEL, REMOVE = tr("Pause"), tr("Resume"), tr("Cancel"), tr("Remove")
SAVE, SAVE_ANSWER, SAVE_ERRORS = tr("Save results"), tr("Save answer"), tr("Save errors")
OPEN_CHAT, DRAFTS, AGAIN, TRY_AGAIN = tr("Open as chat"), tr("Drafts"), tr("Ask again"), tr("Try again")
_OPEN = ("validating", "in_progress", "finalizing", "cancelling")  # such a job is not over
_STATUS = {
    "validating": tr("waits for its turn"),
    "in_progress": tr("at work"),
    "finalizing": tr("writes the results"),
    "cancelling": tr("is being cancelled"),
    "completed": tr("done"),
    "failed": tr("failed"),
    "cancelled": tr("cancelled"),
}


def job_title(job: dict[str, Any]) -> str:
    """Return what a job is called: its file or its question."""
    return str((job.get("metadata") or {}).get("title") or job.get("id"))


def is_question(job: dict[str, Any]) -> bool:
    """Return whether a job is a hard question, not a file."""
    return (job.get("metadata") or {}).get("kind") == "question"


def job_row(job: dict[str, Any], more: str = "", problem: str = "", note: str = "") -> ActionRow:
    """Return how a batch is shown, ``more`` beside it. ``problem`` says what else went wrong, as that nothing came.

    ``note`` says why there are no drafts to be read, where that was asked.
    """
    n_over, total = count_lines(job)
    n_failed = int((job.get("request_counts") or {}).get("failed") or 0)
    status, is_paused = str(job.get("status")), bool(job.get("paused"))
    is_open = status in _OPEN
    replies = [one for found in job.get("deep") or () if (one := fitting(DeepProgress, found)) is not None]
    share = n_over / total if total else 0.0
    if is_question(job):
        said = _question_words(job, is_open and is_paused, replies)
        share = share_of(replies[0]) if replies else share
    else:
        said = (
            tr("paused") if is_open and is_paused else _STATUS.get(status, status),
            tr("{n_over:,} of {total:,}", n_over=n_over, total=total) if total else "",
            tr("{n_failed:,} failed", n_failed=n_failed) if n_failed else "",
            *_stages(replies),
        )
    errors = ((job.get("errors") or {}).get("data") or [{}])[0]
    problems = (of_data(str(errors.get("message") or "")), problem)
    return ActionRow(
        str(job["id"]),
        job_title(job),
        dotted(*said, more),
        tuple(name for name in _actions(job, is_open, is_paused) if not note or name != DRAFTS),
        share if is_open else None,
        is_calm=is_paused,
        problem="\n".join(filter(None, problems)),
        note=note,
    )


def _question_words(job: dict[str, Any], is_paused: bool, replies: list[DeepProgress]) -> tuple[str, ...]:
    """Return what is said of a question: its stage while it is at work, and how long it took."""
    status = str(job.get("status"))
    if is_paused:
        return (tr("paused; it will begin anew"),)
    if replies and status == "in_progress":
        progress = replies[0]
        return (STAGES.get(progress.stage, ""), deep_progress(progress, progress.seconds))
    if status == "completed" and int((job.get("request_counts") or {}).get("failed") or 0):
        return (_STATUS["failed"],)
    took = (job.get("completed_at") or 0) - (job.get("in_progress_at") or 0)
    return (_STATUS.get(status, status), duration(max(took, 1)) if status == "completed" else "")


def _stages(replies: list[DeepProgress]) -> list[str]:
    """Return how many deep replies of a file are in each stage."""
    counts = Counter(one.stage for one in replies)
    return [tr("{stage}: {n:,}", stage=words, n=counts[stage]) for stage, words in STAGES.items() if counts[stage]]


def count_lines(job: dict[str, Any]) -> tuple[int, int]:
    """Return how many lines are over, and how many there are."""
    counts = job.get("request_counts") or {}
    return int(counts.get("completed") or 0) + int(counts.get("failed") or 0), int(counts.get("total") or 0)


def answer_in(line: dict[str, Any]) -> str:
    """Return the text of an answered line."""
    try:
        return str(line["response"]["body"]["choices"][0]["message"]["content"]) + "\n"
    except (KeyError, IndexError, TypeError):
        return json.dumps(line, ensure_ascii=False, indent=2) + "\n"


def question_in(line: dict[str, Any]) -> str:
    """Return the question of a job that asks one."""
    try:
        return str(line["body"]["messages"][-1]["content"])
    except (KeyError, IndexError, TypeError):
        return ""


def problem_in(line: dict[str, Any]) -> str:
    """Return why a line has no answer."""
    body = (line.get("response") or {}).get("body") or {}
    return sentence_of(body) or sentence_of(line) or ""


def _actions(job: dict[str, Any], is_open: bool, is_paused: bool) -> tuple[str, ...]:
    if job.get("status") == "cancelling":
        return ()
    if is_open:
        return (RESUME if is_paused else PAUSE, CANCEL)
    if is_question(job):
        answered = (OPEN_CHAT, DRAFTS, SAVE_ANSWER) if job.get("output_file_id") else (AGAIN,)
        return (*answered, REMOVE)
    saves = ((SAVE, job.get("output_file_id")), (SAVE_ERRORS, job.get("error_file_id")))
    return (*(name for name, there in saves if there), REMOVE)


def url_in(line: bytes) -> str | None:
    """Return where the requests of a file go, from its first line; None where that is none."""
    try:
        url = json.loads(line)["url"]
    except (ValueError, KeyError, TypeError):
        return None
    return url if isinstance(url, str) else None
