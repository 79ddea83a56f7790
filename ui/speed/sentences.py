"""Why the engine is as fast as it is, and what would help, in sentences. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.messages import Bottleneck, Snapshot
from models.library.values import ModelFitReport, Partners, QuantiseOffer
from ui.client.speeds import tokens_of
from ui.language import tr

LIMITS = {
    Bottleneck.BANDWIDTH: tr("limited by memory speed"),
    Bottleneck.COMPUTE: tr("limited by computing"),
    Bottleneck.OVERHEAD: tr("limited by work between steps"),
    Bottleneck.UNKNOWN: tr("the limit is not known yet"),
}
SHOW = tr("Show in the library")
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


def decision(snapshot: Snapshot, why_draft: str, is_last: bool, drafter: str = "") -> str:
    """Return what the scheduler decided and why; ``is_last``: the snapshot is of the last reply.

    ``why_draft`` says who was chosen to draft, ``drafter`` is the name of that model, "" where none is loaded.
    """
    parts = []
    if snapshot.n_active > 1:
        is_cheap = snapshot.cheap_rows >= snapshot.n_active
        how = (
            tr(": up to {n_rows} rows take hardly longer than one", n_rows=snapshot.cheap_rows)
            if is_cheap
            else tr(", which takes longer")
        )
        parts.append(tr("{n_active} requests share each step{how}.", n_active=snapshot.n_active, how=how))
    if snapshot.n_waiting:
        waiting = tr("{n_waiting} wait for a place.", n_waiting=snapshot.n_waiting)
        parts.append(tr("1 waits for a place.") if snapshot.n_waiting == 1 else waiting)
    parts.append(_drafting(snapshot, why_draft, is_last, drafter))
    return " ".join(filter(None, parts))


def _drafting(snapshot: Snapshot, why_draft: str, is_last: bool, drafter: str) -> str:
    if not snapshot.n_drafted:
        # A gain that was expected when it was chosen is not what came of it.
        who = tr("{name} is loaded, and drafts when that pays.", name=drafter) if drafter else why_draft
        if is_last:
            nothing = tr("Nothing was drafted for the last reply: where it would not be faster, drafting is left out.")
            return f"{who} {nothing}".strip()
        if snapshot.n_active:
            nothing = tr("Nothing is drafted just now: where it would not be faster, drafting is left out.")
            return f"{who} {nothing}".strip()
        return why_draft
    share = tr(
        "{when} guessing was right for {n_accepted:,} of {tokens}",
        when=tr("in the last reply") if is_last else tr("over the last second"),
        n_accepted=snapshot.n_accepted,
        tokens=tokens_of(snapshot.n_drafted),
    )
    if snapshot.speedup is None:
        return tr("Drafting is on: {share}.", share=share)
    if snapshot.speedup >= 1:
        return tr(
            "Drafting is on: {share}, which makes it {speedup:.2f} times as fast as plain steps.",
            share=share,
            speedup=snapshot.speedup,
        )
    return tr(
        "Drafting is being tried: {share}, which does not pay yet ({speedup:.2f} times plain steps).",
        share=share,
        speedup=snapshot.speedup,
    )


def helps(
    fit: ModelFitReport | None,
    partners: Partners | None,
    copies: QuantiseOffer | None,
    reply: Snapshot | None,
    drafter: str = "",
) -> list[Help]:
    """Return what would help, the largest gain first; gains are estimates.

    ``drafter`` is the model that is loaded to draft: beside it no other is offered. Some is known only
    after a ``reply`` of the model: whether it reads from memory at all.
    """
    found: list[Help] = []
    if fit is not None and fit.fit.lacks_speed:
        found.append(Help(tr("“Measure this machine” below: then gains can be predicted.")))
    if not drafter:
        found += _draft_helps(partners)
    reads_memory = reply is not None and reply.limited_by is not Bottleneck.COMPUTE and not reply.is_in_cache
    if copies is not None and copies.problem is None and reads_memory:
        usual = next((one for one in copies.targets if one.is_usual and 0 < one.n_bytes < copies.n_bytes), None)
        if usual is not None:
            gain = copies.n_bytes / usual.n_bytes
            found.append(
                Help(
                    tr("A smaller copy ({type}), of which each token reads less.", type=usual.type),
                    gain,
                    SHOW,
                )
            )
    if reply is not None and reply.cheap_rows > 1 and reply.n_active <= 1 and not reply.is_in_cache:
        gain = reply.cheap_rows / _CHEAP
        found.append(
            Help(
                tr(
                    "Several requests at once: {cheap_rows} share a step. For all together",
                    cheap_rows=reply.cheap_rows,
                ),
                gain,
            )
        )
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
            return [Help(tr("Let {name} guess ahead.", name=best.name), gain, tr("Let it draft"), best.name)]
    if not partners.has_worthy:
        return [Help(tr("A small model that guesses ahead."), None, SHOW)]
    return []
