"""What is said of a reply: how far it is, and how it went. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.engine_options import DEFAULT_KV_TYPE
from models.formatting.figures import count, milliseconds, speed
from ui.client.chat_records import EDITED, Message, Status, Timings
from ui.client.speeds import DeepProgress, DeepReceipt, Speed


def deep_progress(progress: DeepProgress, seconds: float) -> str:
    """Return the line under a deep reply before its first word."""
    if progress.stage == "plain":
        return f"Answered directly: {progress.reason}" if progress.reason else "Answered directly"
    parts = [f"{progress.drafts_done} of {progress.drafts} drafts done" if progress.stage == "drafting" else ""]
    parts += [f"{count(progress.tokens)} tokens of thought" if progress.tokens else "", f"{seconds:.1f} s"]
    return "  ·  ".join(part for part in parts if part)


# What the server says of these to clients that send requests holds for the moment, or is what the card's buttons do.
CONTEXT_FULL, ENGINE_DIED = "context_length_exceeded", "engine_died"


def problem_of(message: Message) -> str | None:
    """Return why a reply failed, in words that stay true when the chat is read later; None where it did not."""
    if message.status is not Status.FAILED or message.problem is None:
        return None
    if message.finish_reason in (CONTEXT_FULL, ENGINE_DIED):
        return message.problem.split(". ")[0].rstrip(".") + "."
    return message.problem


def receipt(message: Message) -> str:
    """Return the line under a reply that has ended."""
    parts = [_ending(message), _SPEEDS.get(message.speed, "")]
    timings = message.timings
    if timings is not None:
        parts.append(_deep(timings.deep))
        if timings.decode_per_second > 0:
            parts.append(speed(timings.decode_per_second))
        parts.append(f"first token {milliseconds(timings.ttft_ms)}")
        parts.append(_tokens(timings.decode_tokens))
        parts.append(_prompt(timings))
        parts.append(_drafts(timings))
        parts.append(f"{timings.kv_type} cache" if timings.kv_type not in ("", DEFAULT_KV_TYPE) else "")
    return "  ·  ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a reply's time. ``colour`` is a name in the palette; ``words`` say what was done in it."""

    name: str
    ms: float
    colour: str
    words: str = ""


def phases(timings: Timings) -> list[Phase]:
    """Return where the time of a reply went, in order."""
    written = f"{_tokens(timings.decode_tokens)} at {speed(timings.decode_per_second)}"
    last = Phase("Written", timings.decode_ms, "accent", written if timings.decode_per_second > 0 else "")
    if not timings.knows_prompt:
        return [Phase("First token", timings.ttft_ms, "border_strong"), last]
    read = f"{count(timings.prefill_tokens)} read at {speed(timings.prefill_per_second)}"
    cached = f"{count(timings.cached_tokens)} from the cache"
    words = [read if timings.prefill_tokens else "", cached if timings.cached_tokens else ""]
    return [
        Phase("Waited", timings.queued_ms, "border_strong"),
        Phase("Prompt", timings.prefill_ms, "selection", ", ".join(word for word in words if word)),
        last,
    ]


def receipt_facts(timings: Timings) -> list[tuple[str, str]]:
    """Return the other figures of a reply, each with its name."""
    facts = [("First token", milliseconds(timings.ttft_ms))] if timings.knows_prompt else []
    facts.append(("Total", milliseconds(timings.total_ms)))
    if timings.drafted_tokens:
        share = timings.accepted_tokens / timings.drafted_tokens
        drafted = f"{count(timings.accepted_tokens)} of {count(timings.drafted_tokens)} accepted, {share:.0%}"
        facts += [("Drafts", drafted), ("Speed-up", _against_plain(timings.speedup))]
    if timings.bytes_per_token > 0 and timings.decode_per_second > 0:
        giga = timings.bytes_per_token * timings.decode_per_second / 1e9
        facts.append(("Memory", f"{giga:,.1f} GB/s{_peak(timings)}"))
    if timings.kv_type:
        facts.append(("KV cache", timings.kv_type))
    if timings.seed is not None:
        facts.append(("Seed", str(timings.seed)))
    if timings.deep is not None:
        facts += [
            (stage.stage.capitalize(), f"{_tokens(stage.completion_tokens)} in {milliseconds(stage.ms)}")
            for stage in timings.deep.stages
        ]
        facts += [("Answered directly", timings.deep.reason)] if timings.deep.reason else []
    return facts


LIMITED = 0.6  # of the measured bandwidth: from there on reading is most of each step
_MOST = 0.5  # of a reply's time
_WORTH = 1.05  # speed-ups below this are within the spread of measurements
_AGREES = 0.5  # accepted share of drafts: below, most of their work is thrown away


def why_this_fast(timings: Timings) -> str:
    """Return in a sentence what set the speed of a reply, from its figures."""
    if not timings.knows_prompt:
        return "It was stopped, so there are only the figures that were seen here."
    total = timings.queued_ms + timings.prefill_ms + timings.decode_ms
    if timings.queued_ms > _MOST * total:
        return "It waited most of the time: other requests were running."
    if timings.prefill_ms > _MOST * total:
        return f"Reading the prompt took most of the time: {_tokens(timings.prefill_tokens)} were not in the cache."
    if timings.drafted_tokens and (timings.speedup or 0) >= _WORTH:
        n_steps = max(timings.decode_tokens - timings.accepted_tokens, 1)
        each = timings.decode_tokens / n_steps
        return f"Drafts were right often enough that each step wrote {each:.1f} tokens, and the model checked them all."
    if timings.peak_share is None:
        return "Each token was computed in a step of its own. Memory was no limit here, or was not measured yet."
    if timings.peak_share >= LIMITED:
        return (
            f"Limited by memory speed: each token reads the weights, at {timings.peak_share:.0%} of the measured peak."
        )
    return f"Memory gave {timings.peak_share:.0%} of what it can: computing took longer than reading the weights."


def what_would_help(timings: Timings) -> str:
    """Return in a sentence what would make such a reply faster; "" where its figures say too little."""
    if not timings.knows_prompt:
        return ""
    total = timings.queued_ms + timings.prefill_ms + timings.decode_ms
    if timings.queued_ms > _MOST * total:
        return "Fewer requests at once, or Fast as the speed of this chat, which goes before others."
    if timings.prefill_ms > _MOST * total:
        return "A shorter prompt, or one that begins like an earlier one: what is in the cache is not read again."
    if not timings.drafted_tokens and (timings.peak_share or 0) >= LIMITED:
        return "A draft model, which guesses several tokens for each read, or a smaller quantisation of this model."
    if timings.drafted_tokens and timings.accepted_tokens < _AGREES * timings.drafted_tokens:
        return "A draft model that agrees more often with this one, or a lower temperature."
    if timings.peak_share is not None and timings.peak_share < LIMITED:
        return "Fewer programs and requests at the same time. Then a smaller model: it has less to compute."
    return "A smaller quantisation or model: each token then reads less."


_SPEEDS = {Speed.FAST: "Fast", Speed.BATCH: "Batch"}


def _deep(deep: DeepReceipt | None) -> str:
    if deep is None:
        return ""
    return f"Deep: {deep.drafts_used} drafts" if deep.stages else "Deep: answered directly"


def _ending(message: Message) -> str:
    if message.status is Status.STOPPED:
        return "Stopped"
    if message.finish_reason == EDITED:
        return "Edited by you"
    return "Reached the token limit" if message.finish_reason == "length" else ""


def _drafts(timings: Timings) -> str:
    if not timings.drafted_tokens:
        return ""
    accepted = f"{count(timings.accepted_tokens)} of {count(timings.drafted_tokens)} drafts accepted"
    return accepted if timings.speedup is None else f"{accepted}  ·  {timings.speedup:.1f}× plain"


def _against_plain(speedup: float | None) -> str:
    if speedup is None:
        return "not known yet: too few plain steps were seen"
    return f"{speedup:.2f}× plain, measured"


def _peak(timings: Timings) -> str:
    return f", {timings.peak_share:.0%} of the peak" if timings.peak_share else ""


def _tokens(number: int) -> str:
    return "1 token" if number == 1 else f"{count(number)} tokens"


def _prompt(timings: Timings) -> str:
    if not timings.knows_prompt:
        return ""
    if not timings.cached_tokens:
        return f"prompt {count(timings.prefill_tokens)}"
    total = timings.prefill_tokens + timings.cached_tokens
    return f"prompt {count(total)}, {count(timings.cached_tokens)} cached"
