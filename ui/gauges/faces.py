"""What each gauge shows of a snapshot: words and shares. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.messages import Bottleneck, Snapshot
from models.formatting import figures
from ui.language import tr

NOTHING = "–"
LIMITS = {
    Bottleneck.BANDWIDTH: tr("memory speed"),
    Bottleneck.COMPUTE: tr("computing"),
    Bottleneck.OVERHEAD: tr("work between steps"),
}
_WHY = {
    Bottleneck.BANDWIDTH: tr("Reading the weights takes most of each step: drafts and more requests are nearly free."),
    Bottleneck.COMPUTE: tr("Arithmetic takes most of each step: more rows take longer in proportion."),
    Bottleneck.OVERHEAD: tr("Neither memory nor arithmetic is at its limit: starting work takes most of each step."),
    Bottleneck.UNKNOWN: tr("Not known: the bandwidth of the memory that holds the model has not been measured yet."),
}
IN_CACHE = tr("This model is so small that the processor's cache holds it, so memory hardly matters.")
AT_REST = tr("Nothing runs. Figures come with the next reply.")
_MOST_SEGMENTS = 16


@dataclass(frozen=True, slots=True)
class GaugeFace:
    """A gauge's ``lead`` in quiet, ``value`` in strong and ``unit`` in quiet letters, and the line below.

    The line is filled to ``share`` (0 to 1; None draws it empty), or has ``n_segments`` of which those in ``lit``
    shine. ``hint`` explains it.
    """

    value: str
    unit: str
    share: float | None = None
    n_segments: int = 0
    lit: tuple[int, ...] = ()
    hint: str = ""
    lead: str = ""

    @property
    def words(self) -> str:
        """All of its words."""
        return " ".join(word for word in (self.lead, self.value, self.unit) if word)


def speed(snapshot: Snapshot, fastest: float, is_last: bool = False) -> GaugeFace:
    """Tokens per second, against the ``fastest`` seen. ``is_last``: the snapshot is of the last reply."""
    what = tr("of the last reply") if is_last else tr("over the last second, of all requests")
    hint = tr("Tokens per second {what}. The line is full at the fastest seen.", what=what)
    reads_prompt = snapshot.prefill_rate > snapshot.decode_rate
    rate = snapshot.prefill_rate if reads_prompt else snapshot.decode_rate
    unit = tr("tok/s prompt") if reads_prompt else "tok/s"
    share = rate / fastest if fastest > 0 and not reads_prompt else None
    return GaugeFace(_number(rate), unit, share, hint=hint)


def bandwidth(snapshot: Snapshot) -> GaugeFace:
    """Bytes per second against the measured peak."""
    hint = tr(
        "Computed: the weights and cached tokens that each step reads, over its time.\n"
        "The line is full at the measured bandwidth of the memory that holds the model."
    )
    unit = tr("of {giga} GB/s", giga=_giga(snapshot.peak)) if snapshot.peak else tr("GB/s")
    if snapshot.is_in_cache:
        unit = tr("GB/s in cache")
        hint += "\n" + IN_CACHE
    elif not snapshot.peak:
        hint += "\n" + tr("The peak has not been measured yet.")
    return GaugeFace(_giga(snapshot.bytes_per_second), unit, snapshot.peak_share, hint=hint)


def limited_by(snapshot: Snapshot) -> GaugeFace:
    """What sets the speed."""
    order = list(LIMITS)
    found = snapshot.limited_by
    is_small = snapshot.is_in_cache and found is Bottleneck.COMPUTE
    why = AT_REST if snapshot.is_idle else IN_CACHE if is_small else _WHY[found]
    hint = tr("What sets the speed: memory, computing or work between steps.\n{WHY}\nClick for more.", WHY=why)
    if snapshot.is_idle or found not in order:
        return GaugeFace(NOTHING, tr("limit"), n_segments=len(order), hint=hint)
    lit = (order.index(found),)
    return GaugeFace(LIMITS[found], "", n_segments=len(order), lit=lit, hint=hint, lead=tr("limited by"))


def drafts(snapshot: Snapshot, is_last: bool = False) -> GaugeFace:
    """Accepted drafts, and what they are worth. ``is_last``: the snapshot is of the last reply."""
    when = tr("in the last reply") if is_last else tr("over the last second")
    hint = tr("Tokens that were guessed ahead and accepted, {when}, and the speed against plain decoding.", when=when)
    depths = [
        tr("token {depth}: {accepted:.0%} of {drafted:,}", depth=depth, accepted=accepted / drafted, drafted=drafted)
        for depth, (drafted, accepted) in enumerate(zip(snapshot.drafted_at, snapshot.accepted_at, strict=False), 1)
        if drafted
    ]
    if depths:
        hint += "\n" + "\n".join([tr("Accepted since the model was loaded:"), *depths])
    if snapshot.acceptance is None:
        return GaugeFace(NOTHING, tr("drafts"), hint=hint)
    unit = tr("drafts") if snapshot.speedup is None else tr("drafts · {speedup:.1f}×", speedup=snapshot.speedup)
    return GaugeFace(figures.percent(snapshot.acceptance), unit, snapshot.acceptance, hint=hint)


def requests(snapshot: Snapshot, n_slots: int) -> GaugeFace:
    """Requests at work and in the queue."""
    hint = tr(
        "Places for requests taken: {n_active} of {n_slots}. Requests that wait: {n_waiting}.\n"
        "Cells of the cache that hold tokens: {n_cells_used:,} of {n_cells:,}.",
        n_active=snapshot.n_active,
        n_slots=n_slots,
        n_waiting=snapshot.n_waiting,
        n_cells_used=snapshot.n_cells_used,
        n_cells=snapshot.n_cells,
    )
    waiting = tr("active · {n_waiting} wait", n_waiting=snapshot.n_waiting) if snapshot.n_waiting else tr("active")
    unit = tr("active · 1 waits") if snapshot.n_waiting == 1 else waiting
    if n_slots > _MOST_SEGMENTS:
        return GaugeFace(str(snapshot.n_active), unit, snapshot.n_active / n_slots, hint=hint)
    return GaugeFace(str(snapshot.n_active), unit, n_segments=n_slots, lit=tuple(range(snapshot.n_active)), hint=hint)


def _number(rate: float) -> str:
    if rate <= 0:
        return NOTHING
    return figures.rate(rate)


def _giga(n_bytes: float | None) -> str:
    if not n_bytes or n_bytes <= 0:
        return NOTHING
    giga = n_bytes / 1e9
    return figures.in_marks(f"{giga:,.1f}" if giga < 100 else f"{giga:,.0f}")
