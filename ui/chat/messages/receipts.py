"""What is said of a reply: how far it is, and how it went. No Qt here."""

from __future__ import annotations

from core.values.engine_options import DEFAULT_KV_TYPE
from models.formatting.figures import count, milliseconds, size, speed
from ui.client.chat_records import Message, Status, Timings
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
        parts.append(f"{count(timings.decode_tokens)} tokens")
        parts.append(_prompt(timings))
        parts.append(_drafts(timings))
        parts.append(f"{timings.kv_type} cache" if timings.kv_type not in ("", DEFAULT_KV_TYPE) else "")
    return "  ·  ".join(part for part in parts if part)


def receipt_details(timings: Timings) -> str:
    """Return all figures of a reply, a line each."""
    lines = [f"Time to first token: {milliseconds(timings.ttft_ms)}"]
    if timings.knows_prompt:
        lines.insert(0, f"Waited in the queue: {milliseconds(timings.queued_ms)}")
        lines.append(
            f"Prefill: {count(timings.prefill_tokens)} tokens in {milliseconds(timings.prefill_ms)}"
            f" ({speed(timings.prefill_per_second)}), {count(timings.cached_tokens)} more from the cache"
        )
    lines += [
        f"Decode: {count(timings.decode_tokens)} tokens in {milliseconds(timings.decode_ms)}"
        f" ({speed(timings.decode_per_second)})",
        f"Total: {milliseconds(timings.total_ms)}",
    ]
    if timings.drafted_tokens:
        lines.append(
            f"Drafts: {count(timings.accepted_tokens)} of {count(timings.drafted_tokens)} accepted, "
            + _against_plain(timings.speedup)
        )
        lines.append("Same model, same text: it checks each drafted token")
    if timings.bytes_per_token > 0:
        lines.append(f"Read for each token: {size(timings.bytes_per_token)}{_peak(timings)}")
    if timings.kv_type:
        lines.append(f"KV cache: {timings.kv_type}")
    if timings.seed is not None:
        lines.append(f"Seed: {timings.seed}")
    if timings.deep is not None:
        lines += [
            f"{stage.stage.capitalize()}: {count(stage.completion_tokens)} tokens in {milliseconds(stage.ms)}"
            for stage in timings.deep.stages
        ]
        lines += [f"Answered directly: {timings.deep.reason}"] if timings.deep.reason else []
    return "\n".join(lines)


_SPEEDS = {Speed.FAST: "Fast", Speed.BATCH: "Batch"}


def _deep(deep: DeepReceipt | None) -> str:
    if deep is None:
        return ""
    return f"Deep: {deep.drafts_used} drafts" if deep.stages else "Deep: answered directly"


def _ending(message: Message) -> str:
    if message.status is Status.STOPPED:
        return "Stopped"
    return "Reached the token limit" if message.finish_reason == "length" else ""


def _drafts(timings: Timings) -> str:
    if not timings.drafted_tokens:
        return ""
    accepted = f"{count(timings.accepted_tokens)} of {count(timings.drafted_tokens)} drafts accepted"
    return accepted if timings.speedup is None else f"{accepted}  ·  {timings.speedup:.1f}× plain"


def _against_plain(speedup: float | None) -> str:
    if speedup is None:
        return "too little of plain decoding was seen to compare with"
    return f"{speedup:.2f} times the speed of plain decoding"


def _peak(timings: Timings) -> str:
    return f", at {timings.peak_share:.0%} of the measured bandwidth" if timings.peak_share else ""


def _prompt(timings: Timings) -> str:
    if not timings.knows_prompt:
        return ""
    if not timings.cached_tokens:
        return f"prompt {count(timings.prefill_tokens)}"
    total = timings.prefill_tokens + timings.cached_tokens
    return f"prompt {count(total)}, {count(timings.cached_tokens)} cached"
