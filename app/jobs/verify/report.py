"""The report of a verification: the model and who drafts for it, as JSON, as a table, and in a sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.doctor.machine import machine, versions
from app.jobs.verify.near_tie import FAR, NEAR_TIE
from app.jobs.verify.verification import LEAST_SPEEDUP, TEMPERATURE, ChosenToken, Comparison, Difference, Verification
from app.library.find_model import catalog, find_draft, find_model
from app.pairing.service import draft_for
from app.settings.server_settings import ServerSettings
from core.values.errors import BadOption
from models.formatting.figures import rounded
from models.formatting.program import PROGRAM
from models.formatting.safe_text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.jobs.verify.prompt_file import VerifyPrompt
    from core.values.messages import LoadedModel
    from models.catalog.catalog import ModelEntry


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A model and its draft model; without one and with no heads, texts are looked up."""

    model: ModelEntry
    draft: ModelEntry | None
    uses_heads: bool = True


def choose_pair(model: str | None, draft: str | None, *, is_lookup_only: bool) -> ModelPair:
    """Return the models that are named; where no draft is, the one that drafts when the model is loaded.

    Raises UnknownModel, UnusableModel, and BadOption where both a draft and lookups alone are asked for.
    """
    if draft is not None and is_lookup_only:
        raise BadOption("--draft names a draft model and --lookup-only uses none: leave out one of them.")
    from models.catalog.catalog import STARTER

    models = catalog()
    target = find_model(model if model is not None else str(STARTER), models)
    if is_lookup_only:
        return ModelPair(target, None, uses_heads=False)
    if draft is not None:
        return ModelPair(target, find_draft(draft, models))
    found = draft_for(target, models, ServerSettings())
    draft_entry = find_draft(str(found.path), models) if found.path is not None else None
    return ModelPair(target, draft_entry, found.uses_heads)


_SUMMARY_CHARS = 60  # of a prompt in the table
_PLAIN_WIDTH = 130
_LOSES = (
    f"Drafting COSTS time here: the median is below {LEAST_SPEEDUP}. Where other programs use the machine, verify "
    f"again without them; `{PROGRAM} serve --no-draft` uses no draft model."
)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """A verification and what it was made of.

    ``source`` names the prompts; ``depth`` is None where each step decides how much is drafted.
    """

    pair: ModelPair
    model: LoadedModel
    prompts: tuple[VerifyPrompt, ...]
    source: str
    n_tokens: int
    n_seeds: int
    depth: int | None
    found: Verification

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine(),
            "versions": versions(),
            "model": self._model(),
            "settings": self._settings(),
            "rows": [self._row(one) for one in self.found.comparisons],
            "summary": self._summary(),
        }

    def _model(self) -> dict[str, Any]:
        model, draft = self.model, self.pair.draft
        return {
            "name": self.pair.model.name,
            "draft": draft.name if draft is not None else None,
            "description": model.description,
            "n_params": model.n_params,
            "n_bytes": model.n_bytes,
            "n_ctx": model.n_ctx,
            "n_slots": model.n_slots,
            "n_threads": model.n_threads,
            "n_gpu_layers": model.n_gpu_layers,
            "n_cpu_moe": model.n_cpu_moe,
            "kv_type": model.kv_type,
            "devices": list(model.devices),
        }

    def _settings(self) -> dict[str, Any]:
        return {
            "prompts": self.source,
            "max_tokens": self.n_tokens,
            "seeds": self.n_seeds,
            "temperature": TEMPERATURE,
            "depth": self.depth,
            "near_tie": NEAR_TIE,
        }

    def _row(self, one: Comparison) -> dict[str, Any]:
        prompt = self.prompts[one.prompt]
        return {
            "prompt": one.prompt + 1,
            "line": prompt.line,
            "kind": prompt.kind,
            "text": prompt.summary[:_SUMMARY_CHARS],
            "mode": one.mode.name,
            "seed": one.mode.seed,
            "identical": one.is_identical,
            "difference": _difference(one.difference) if one.difference is not None else None,
            "n_tokens": len(one.drafted.tokens),
            "plain_tokens_per_s": round(one.plain.rate, 2),
            "drafted_tokens_per_s": round(one.drafted.rate, 2),
            "speedup": rounded(one.speedup, 4),
            "control": rounded(one.control, 4),
            "drafted": one.drafted.n_drafted,
            "accepted": one.drafted.n_accepted,
        }

    def _summary(self) -> dict[str, Any]:
        found = self.found
        return {
            "ok": not found.n_wrong and not self.is_slower,
            "verdict": self.verdict,
            "identical_greedy": rounded(found.identical_share("greedy"), 4),
            "identical_sampled": rounded(found.identical_share("sampled"), 4),
            "differences": len(found.differences),
            "beyond_near_tie": found.n_wrong,
            "largest_gap": rounded(found.largest_gap, 4),
            "speedup_median": rounded(found.median_speedup, 4),
            "speedup_min": rounded(min(found.speedups, default=None), 4),
            "control_min": rounded(min(found.controls, default=None), 4),
            "drafted": found.n_drafted,
            "accepted": found.n_accepted,
            "repeated_prompts": found.n_repeated,
        }

    @property
    def verdict(self) -> str:
        """The outcome, in a sentence."""
        found = self.found
        if not found.n_drafted and not found.differences:
            sentences = (
                "Nothing was drafted: plain decoding is faster here, so all replies were decoded plainly and this "
                "verifies nothing. --depth 4 drafts always."
            )
            return f"{sentences} {_LOSES}" if self.is_slower else sentences
        sentences = f"{_what_changed(found)} {_what_it_gained(found)}"
        return f"{sentences} {_LOSES}" if self.is_slower else sentences

    @property
    def is_slower(self) -> bool:
        """True where drafting cost time although each step decides whether it pays."""
        return self.depth is None and self.found.is_slower

    def table(self) -> RenderableType:
        """Return a row for each prompt and mode."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("prompt", overflow="ellipsis", no_wrap=True, max_width=30)
        table.add_column("mode", no_wrap=True)
        for title in ("tokens", "plain/s", "drafted/s", "speed", "drafted", "accepted"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("texts")
        for one in self.found.comparisons:
            table.add_row(*(Text(cell) for cell in self._cells(one)))
        return table

    def _cells(self, one: Comparison) -> Iterator[str]:
        prompt = self.prompts[one.prompt]
        yield one_line(f"{one.prompt + 1} {prompt.summary}")
        yield one.mode.name if one.mode.seed is None else f"seed {one.mode.seed}"
        yield str(len(one.drafted.tokens))
        yield f"{one.plain.rate:.1f}"
        yield f"{one.drafted.rate:.1f}"
        yield f"{one.speedup:.2f}×" if one.speedup is not None else "-"
        yield str(one.drafted.n_drafted)
        yield str(one.drafted.n_accepted)
        yield "identical" if one.difference is None else _in_words(one.difference)

    def show(self) -> None:
        """Print the table and the verdict."""
        from rich.console import Console

        console = Console(highlight=False, markup=False)
        if not console.is_terminal:
            console = Console(highlight=False, markup=False, width=_PLAIN_WIDTH)
        console.print(self.table())
        print(self.verdict)


def _what_changed(found: Verification) -> str:
    n_all, n_different = len(found.comparisons), len(found.differences)
    if not n_different and n_all == 1:
        return "Drafting changed nothing: the reply is the same, token for token."
    if not n_different:
        return f"Drafting changed nothing: all {n_all} replies are the same, token for token."
    share = f"{n_all - n_different} of {n_all} replies are identical"
    if not found.n_wrong:
        return (
            f"Drafting changed nothing but near-ties: {share}, and where the others part, both tokens were within "
            f"{found.largest_gap:.3f} logits of being chosen (rounding can do {NEAR_TIE})."
        )
    return (
        f"Drafting CHANGED what the model says: {share}, and at {found.n_wrong} of {n_different} differences a token "
        f"was chosen that plain decoding was far from choosing ({_gap(found.largest_gap)} at most; rounding explains "
        f"up to {NEAR_TIE} logits)."
    )


def _what_it_gained(found: Verification) -> str:
    drafts = f"{found.n_accepted} of {found.n_drafted} drafted tokens were accepted."
    if found.median_speedup is None:
        return f"{drafts} The replies are too short to say what that gains."
    lowest = f"{min(found.speedups):.2f}"
    if found.controls:
        lowest = f"{lowest} (plain decoding beside itself at worst {min(found.controls):.2f})"
    return (
        f"{drafts} Median speed {found.median_speedup:.2f} of plain decoding, lowest {lowest}, each prompt seen for "
        "the first time."
    )


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "position": difference.position,
        "plain": _candidate(difference.plain),
        "drafted": _candidate(difference.drafted),
        "gap": round(difference.gap, 6),
        "near_tie": difference.is_near_tie,
    }


def _candidate(candidate: ChosenToken) -> dict[str, Any]:
    return {"token": candidate.token, "text": candidate.text}


def _in_words(difference: Difference) -> str:
    plain, drafted = (
        repr(one.text) if one.token is not None else "nothing" for one in (difference.plain, difference.drafted)
    )
    kind = "near-tie" if difference.is_near_tie else "DIFFERENT"
    return f"{kind} at {difference.position}: {plain} or {drafted}, {_gap(difference.gap)}"


def _gap(gap: float | None) -> str:
    return "impossible" if gap is not None and gap >= FAR / 2 else f"gap {gap:.3f}"
