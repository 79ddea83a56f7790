"""Why the engine is as fast as it is, and what would help, in sentences. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.snapshot import Bottleneck, Snapshot
from models.library.values import ModelFitReport, Partners, QuantiseOffer

LIMITS = {
    Bottleneck.BANDWIDTH: "limited by memory speed",
    Bottleneck.COMPUTE: "limited by arithmetic",
    Bottleneck.OVERHEAD: "limited by work between steps",
    Bottleneck.UNKNOWN: "the limit is not known yet",
}
_CHEAP = 1.75  # so much longer than a step of one row takes a step with all ``cheap_rows``
_WORTH = 1.1  # what gains less is not worth a line


@dataclass(frozen=True, slots=True)
class Help:
    """Something that would make replies faster; ``gain`` is a predicted factor. ``action`` names a button, "" none.

    ``target`` is what the action is about: the name of a model.
    """

    words: str
    gain: float | None = None
    action: str = ""
    target: str = ""


def limit(snapshot: Snapshot) -> str:
    """Return what sets the speed, in words for anybody."""
    if snapshot.is_in_cache:
        return "so small that memory speed hardly matters"
    return LIMITS[snapshot.bound]


def decision(snapshot: Snapshot, why_draft: str, is_last: bool) -> str:
    """Return what the scheduler decided and why; ``is_last``: the snapshot is of the last reply."""
    parts = []
    if snapshot.n_active > 1:
        is_cheap = snapshot.cheap_rows >= snapshot.n_active
        how = f": up to {snapshot.cheap_rows} rows take hardly longer than one" if is_cheap else ", which takes longer"
        parts.append(f"{snapshot.n_active} requests share each step{how}.")
    if snapshot.n_waiting:
        parts.append(f"{snapshot.n_waiting} wait for a place.")
    parts.append(_drafting(snapshot, why_draft, is_last))
    return " ".join(filter(None, parts))


def _drafting(snapshot: Snapshot, why_draft: str, is_last: bool) -> str:
    if not snapshot.n_drafted:
        if is_last:
            return f"{why_draft} For the last reply plain steps were expected to be faster: no guesses.".strip()
        if snapshot.n_active:
            return f"{why_draft} Just now plain steps are expected to be faster: nothing is guessed ahead.".strip()
        return why_draft
    share = f"{snapshot.n_accepted:,} of {snapshot.n_drafted:,} guessed tokens were right"
    if snapshot.speedup is None:
        return f"Drafting is on: {share}."
    if snapshot.speedup >= 1:
        return f"Drafting is on: {share}, which makes it {snapshot.speedup:.2f} times as fast as plain steps."
    return f"Drafting is being tried: {share}, which does not pay yet ({snapshot.speedup:.2f} times plain steps)."


def helps(
    fit: ModelFitReport | None, partners: Partners | None, copies: QuantiseOffer | None, snapshot: Snapshot
) -> list[Help]:
    """Return what would help, the largest gain first; gains are estimates."""
    found: list[Help] = []
    if fit is not None and fit.fit.lacks_speed:
        found.append(Help("“Measure this machine” below: then gains can be predicted."))
    found += _draft_helps(partners)
    is_bound = snapshot.bound is Bottleneck.COMPUTE or snapshot.is_in_cache
    if copies is not None and copies.problem is None and not is_bound:
        usual = next((one for one in copies.targets if one.is_usual and 0 < one.n_bytes < copies.n_bytes), None)
        if usual is not None:
            gain = copies.n_bytes / usual.n_bytes
            found.append(
                Help(f"A smaller copy ({usual.type}), of which each token reads less.", gain, "Show in the library")
            )
    if snapshot.cheap_rows > 1 and snapshot.n_active <= 1 and not snapshot.is_in_cache:
        gain = snapshot.cheap_rows / _CHEAP
        found.append(Help(f"Several requests at once: {snapshot.cheap_rows} share a step. For all together", gain))
    worthy = [one for one in found if one.gain is None or one.gain >= _WORTH]
    return sorted(worthy, key=lambda one: one.gain or 99.0, reverse=True)


def _draft_helps(partners: Partners | None) -> list[Help]:
    if partners is None:
        return []
    if partners.used is None:
        usable = [one for one in partners.partners if one.problem is None]
        best = max(usable, key=lambda one: one.measured or one.predicted or 0.0, default=None)
        if best is not None and (best.measured or best.predicted):
            gain = best.measured or best.predicted
            return [Help(f"Let {best.name} guess ahead.", gain, "Let it draft", best.name)]
    if not partners.has_worthy:
        return [Help("A small model that guesses ahead.", None, "Show in the library")]
    return []
