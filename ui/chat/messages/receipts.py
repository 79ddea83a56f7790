"""What is said of a reply: how far it is, and how it went. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.engine_options import DEFAULT_KV_TYPE
from core.values.messages import Bottleneck
from models.formatting.figures import count, milliseconds, speed
from ui.client.chat_records import EDITED, Message, Status, Timings
from ui.client.speeds import CHOICE_OF, STAGES, DeepReceipt, Speed, tokens_of
from ui.language import dotted, of_data, tr

# What the server says of these to clients that send requests holds for the moment, or is what the card's buttons do.
CONTEXT_FULL, ENGINE_DIED = "context_length_exceeded", "engine_died"


def failure_of(message: Message) -> str | None:
    """Return why a reply failed, in words that stay true when the chat is read later; None where it did not."""
    if message.status is not Status.FAILED or message.problem is None:
        return None
    return why_failed(message.problem, message.finish_reason or "")


def why_failed(problem: str, code: str) -> str:
    """Return why a reply failed, from the sentence and the code of the server's error."""
    if code == CONTEXT_FULL:
        return tr("This is too long: the model cannot read all of it at once.")
    if code == ENGINE_DIED:
        return problem.split(". ")[0].rstrip(".") + "."
    return problem


def receipt(message: Message) -> str:
    """Return the line under a reply that has ended."""
    parts = [_ending(message), _SPEEDS.get(message.speed, "")]
    timings = message.timings
    if timings is not None:
        parts.append(_deep(timings.deep))
        if timings.decode_per_second > 0:
            parts.append(speed(timings.decode_per_second))
        parts.append(_gain(timings))
        parts.append(_drafts(timings))
        parts.append(tr("first token {ttft_ms}", ttft_ms=milliseconds(timings.ttft_ms)))
        parts.append(tokens_of(timings.decode_tokens))
        parts.append(_prompt(timings))
        parts.append(
            tr("{kv_type} cache", kv_type=timings.kv_type) if timings.kv_type not in ("", DEFAULT_KV_TYPE) else ""
        )
    return dotted(*parts)


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a reply's time. ``colour`` is a name in the palette; ``words`` say what was done in it."""

    name: str
    ms: float
    colour: str
    words: str = ""


def phases(timings: Timings) -> list[Phase]:
    """Return where the time of a reply went, in order."""
    written = tr(
        "{tokens} at {decode_per_second}",
        tokens=tokens_of(timings.decode_tokens),
        decode_per_second=speed(timings.decode_per_second),
    )
    last = Phase(tr("Written"), timings.decode_ms, "accent", written if timings.decode_per_second > 0 else "")
    if not timings.knows_prompt:
        return [Phase(tr("First token"), timings.ttft_ms, "border_strong"), last]
    read = tr(
        "{prefill_tokens} read at {prefill_per_second}",
        prefill_tokens=count(timings.prefill_tokens),
        prefill_per_second=speed(timings.prefill_per_second),
    )
    cached = tr("{cached_tokens} from the cache", cached_tokens=count(timings.cached_tokens))
    words = [read if timings.prefill_tokens else "", cached if timings.cached_tokens else ""]
    return [
        Phase(tr("Waited"), timings.queued_ms, "border_strong"),
        Phase(tr("Prompt"), timings.prefill_ms, "selection", ", ".join(word for word in words if word)),
        last,
    ]


def receipt_facts(timings: Timings) -> list[tuple[str, str]]:
    """Return the other figures of a reply, each with its name."""
    facts = [(tr("First token"), milliseconds(timings.ttft_ms))] if timings.knows_prompt else []
    facts.append((tr("Total"), milliseconds(timings.total_ms)))
    if timings.drafted_tokens:
        share = timings.accepted_tokens / timings.drafted_tokens
        drafted = tr(
            "{accepted_tokens} of {drafted_tokens} accepted, {share:.0%}",
            accepted_tokens=count(timings.accepted_tokens),
            drafted_tokens=count(timings.drafted_tokens),
            share=share,
        )
        facts += [(tr("Drafts"), drafted), (tr("Speed-up"), _against_plain(timings.speedup))]
    if timings.bytes_per_token > 0 and timings.decode_per_second > 0:
        giga = timings.bytes_per_token * timings.decode_per_second / 1e9
        facts.append((tr("Memory"), tr("{giga:,.1f} GB/s{peak}", giga=giga, peak=_peak(timings))))
    if timings.kv_type:
        facts.append((tr("KV cache"), timings.kv_type))
    if timings.seed is not None:
        facts.append((tr("Seed"), str(timings.seed)))
    if timings.deep is not None:
        facts += [
            (
                STAGES.get(stage.stage, stage.stage),
                tr("{tokens} in {ms}", tokens=tokens_of(stage.completion_tokens), ms=milliseconds(stage.ms)),
            )
            for stage in timings.deep.stages
        ]
        facts += [(tr("Answered directly"), of_data(timings.deep.reason))] if timings.deep.reason else []
    return facts


# Of the measured bandwidth: from there on reading is most of each step. For replies that do not say what limited them.
_READING = 0.6
_MOST = 0.5  # of a reply's time
_WORTH = 1.05  # speed-ups below this are within the spread of measurements
_AGREES = 0.5  # accepted share of drafts: below, most of their work is thrown away
_LIMITS = {
    Bottleneck.COMPUTE: tr("Limited by computing, not by the speed of memory."),
    Bottleneck.OVERHEAD: tr("Limited by work between steps: neither memory nor computing took most of the time."),
}


def why_this_fast(timings: Timings) -> str:
    """Return in a sentence what set the speed of a reply, from its figures."""
    if not timings.knows_prompt:
        return tr("It was stopped, so there are only the figures that were seen here.")
    total = timings.queued_ms + timings.prefill_ms + timings.decode_ms
    if timings.queued_ms > _MOST * total:
        return tr("It waited most of the time: other requests were running.")
    if timings.prefill_ms > _MOST * total:
        return tr(
            "Reading the prompt took most of the time: {tokens} were not in the cache.",
            tokens=tokens_of(timings.prefill_tokens),
        )
    each = timings.decode_tokens / max(timings.decode_tokens - timings.accepted_tokens, 1)
    if timings.drafted_tokens and (timings.speedup or 0) >= _WORTH:
        return tr(
            "Drafts were right often enough that each step wrote {each:.1f} tokens, and the model checked them all.",
            each=each,
        )
    if timings.accepted_tokens and timings.speedup is None and timings.peak_share is None:
        return tr("Drafts let each step write {each:.1f} tokens. What that gained is not known yet.", each=each)
    return " ".join(filter(None, (_without_gain(timings), _limit(timings))))


def _without_gain(timings: Timings) -> str:
    if timings.drafted_tokens and (timings.speedup is not None or not timings.accepted_tokens):
        return tr("Drafts did not make it faster.")
    if timings.limited_by is Bottleneck.UNKNOWN and timings.peak_share is None:
        return tr("Each token was computed in a step of its own.")
    return ""


def _limit_of(timings: Timings) -> Bottleneck:
    if timings.limited_by is Bottleneck.UNKNOWN and (timings.peak_share or 0) >= _READING:
        return Bottleneck.BANDWIDTH
    return timings.limited_by


def _limit(timings: Timings) -> str:
    """Return what took most of each step, in the words of the gauges."""
    limit, share = _limit_of(timings), timings.peak_share
    if limit in _LIMITS:
        return _LIMITS[limit]
    if share is None:
        return tr("What limited it is not known.")
    if limit is Bottleneck.BANDWIDTH:
        return tr(
            "Limited by memory speed: each token reads the weights, at {peak_share:.0%} of the measured peak.",
            peak_share=share,
        )
    return tr(
        "Memory gave {peak_share:.0%} of what it can: computing and the work between steps took the rest of the time.",
        peak_share=share,
    )


def what_would_help(timings: Timings) -> str:
    """Return in a sentence what would make such a reply faster; "" where its figures say too little."""
    if not timings.knows_prompt:
        return ""
    total = timings.queued_ms + timings.prefill_ms + timings.decode_ms
    if timings.queued_ms > _MOST * total:
        return tr("Fewer requests at once, or Fast as the speed of this chat, which goes before others.")
    if timings.prefill_ms > _MOST * total:
        return tr("A shorter prompt, or one that begins like an earlier one: what is in the cache is not read again.")
    limit = _limit_of(timings)
    if not timings.drafted_tokens and limit is Bottleneck.BANDWIDTH:
        return tr("A draft model that is often right, which saves reads, or a smaller quantisation of this model.")
    if timings.drafted_tokens and timings.accepted_tokens < _AGREES * timings.drafted_tokens:
        return tr("A draft model that agrees more often with this one, or a lower temperature.")
    if limit in _LIMITS or (limit is Bottleneck.UNKNOWN and timings.peak_share is not None):
        return tr("Fewer programs and requests at the same time. Then a smaller model: it has less to compute.")
    return tr("A smaller quantisation or model: each token then takes less work.")


_SPEEDS = {speed: CHOICE_OF[speed].name for speed in (Speed.FAST, Speed.BATCH)}


def _deep(deep: DeepReceipt | None) -> str:
    if deep is None:
        return ""
    if not deep.stages:
        return tr("Deep: answered directly")
    n = deep.drafts_used
    return tr("Deep: 1 draft") if n == 1 else tr("Deep: {drafts_used} drafts", drafts_used=n)


def _ending(message: Message) -> str:
    if message.status is Status.STOPPED:
        return tr("Stopped")
    if message.finish_reason == EDITED:
        return tr("Edited by you")
    cut = {"length": tr("Reached the token limit"), CONTEXT_FULL: tr("Filled the context")}
    return cut.get(message.finish_reason or "", "") if message.status is Status.DONE else ""


def _gain(timings: Timings) -> str:
    if not timings.drafted_tokens or timings.speedup is None:
        return ""
    return tr("{speedup:.1f}× plain", speedup=timings.speedup)


def _drafts(timings: Timings) -> str:
    if not timings.drafted_tokens:
        return ""
    if timings.drafted_tokens == 1:
        return tr("{accepted_tokens} of 1 draft accepted", accepted_tokens=timings.accepted_tokens)
    return tr(
        "{accepted_tokens} of {drafted_tokens} drafts accepted",
        accepted_tokens=count(timings.accepted_tokens),
        drafted_tokens=count(timings.drafted_tokens),
    )


def _against_plain(speedup: float | None) -> str:
    if speedup is None:
        return tr("too few plain steps yet")
    return tr("{speedup:.2f}× plain, measured", speedup=speedup)


def _peak(timings: Timings) -> str:
    return tr(", {peak_share:.0%} of the peak", peak_share=timings.peak_share) if timings.peak_share else ""


def _prompt(timings: Timings) -> str:
    if not timings.knows_prompt:
        return ""
    if not timings.cached_tokens:
        return tr("prompt {prefill_tokens}", prefill_tokens=count(timings.prefill_tokens))
    total = timings.prefill_tokens + timings.cached_tokens
    return tr("prompt {total}, {cached_tokens} cached", total=count(total), cached_tokens=count(timings.cached_tokens))
