"""What replies have in common on OpenAI's wire, and what they cost: ``usage`` and ``timings``."""

from __future__ import annotations

import hashlib
import json
import math
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app import __version__
from app.server.calls.speed import marks
from app.server.chat.call import Call
from app.server.chat.run import Choice, EngineRun, Reply
from app.server.http.sse import DONE, encode_event
from core.values.messages import LoadedModel, Logprob, PromptRead, Receipt, TokenLogprob


def usage(receipts: Sequence[Receipt], n_prompts: int = 1) -> dict[str, Any]:
    """Return OpenAI's usage object; a prompt that several choices share counts once.

    ``receipts`` lists the choices of the first prompt, then those of the second, and so on.
    """
    firsts = receipts[:: max(1, len(receipts) // n_prompts)]
    n_prompt = sum(receipt.n_prompt for receipt in firsts)
    n_generated = sum(receipt.n_generated for receipt in receipts)
    return {
        "prompt_tokens": n_prompt,
        "completion_tokens": n_generated,
        "total_tokens": n_prompt + n_generated,
        "prompt_tokens_details": {
            "cached_tokens": sum(receipt.n_cached for receipt in firsts),
            "cache_miss": cache_miss(firsts),
        },
    }


def timings(receipts: Sequence[Receipt]) -> dict[str, Any]:
    """Return the timings object: times in ms, rates in tokens per second.

    Several choices run side by side: the first token of any, the longest times, and the tokens of all.
    ``bytes_per_token`` is what was read for each decoded token, ``peak_share`` the rate of reading as a share of this
    machine's measured bandwidth (null where that is not known or does not matter), ``limited_by`` is what took most of
    each step (``bandwidth``, ``compute``, ``overhead`` or ``unknown``), ``speedup`` is over plain steps that the engine
    has seen (1 where nothing was drafted, null where it has seen too few), ``kv_type`` the type of the KV cache.

    ``cache_miss`` says after how many tokens a stored text and the prompt first differ, and how each goes on;
    null where the prompt goes on from what is stored or nothing like it is known.
    """
    prefill = max(receipt.prefill for receipt in receipts)
    decode = max(receipt.decode for receipt in receipts)
    n_prefill = sum(receipt.n_prompt - receipt.n_cached for receipt in receipts)
    n_decode = sum(receipt.n_generated for receipt in receipts)
    n_after_first = sum(max(0, receipt.n_generated - 1) for receipt in receipts)
    n_cached = sum(receipt.n_cached for receipt in receipts)
    n_drafted = sum(receipt.n_drafted for receipt in receipts)
    n_accepted = sum(receipt.n_accepted for receipt in receipts)
    return {
        "ttft_ms": _ms(min(receipt.ttft for receipt in receipts)),
        "prefill_ms": _ms(prefill),
        "decode_ms": _ms(decode),
        "total_ms": _ms(max(receipt.total for receipt in receipts)),
        "queued_ms": _ms(max(receipt.queued for receipt in receipts)),
        "prefill_tokens": n_prefill,
        "prefill_per_second": _rate(n_prefill, prefill),
        "decode_tokens": n_decode,
        "decode_per_second": _rate(n_after_first, decode),
        "cached_tokens": n_cached,
        "cache_miss": cache_miss(receipts),
        "drafted_tokens": n_drafted,
        "accepted_tokens": n_accepted,
        "bytes_per_token": round(_mean(receipts, [receipt.bytes_per_token for receipt in receipts])),
        "peak_share": _highest([receipt.peak_share for receipt in receipts]),
        "limited_by": max(receipts, key=lambda receipt: receipt.decode).limited_by,
        "speedup": _speedup(receipts),
        "kv_type": receipts[0].kv_type,
        "seed": receipts[0].seed,
        # The figures by llama-server's names (``result_timings`` in its ``server-task.h``).
        "cache_n": n_cached,
        "prompt_n": n_prefill,
        "prompt_ms": _ms(prefill),
        "prompt_per_token_ms": _ms(prefill / n_prefill) if n_prefill else 0.0,
        "prompt_per_second": _rate(n_prefill, prefill),
        "predicted_n": n_decode,
        "predicted_ms": _ms(decode),
        "predicted_per_token_ms": _ms(decode / n_after_first) if n_after_first else 0.0,
        "predicted_per_second": _rate(n_after_first, decode),
        "draft_n": n_drafted,
        "draft_n_accepted": n_accepted,
    }


def timings_so_far(choice: Choice) -> dict[str, Any]:
    """Return what is known of a reply once its first token has come, by our names and llama-server's."""
    n_tokens, started = choice.n_tokens, choice.started
    seconds = time.monotonic() - choice.first_at if choice.first_at is not None else 0.0
    told: dict[str, Any] = {"decode_tokens": n_tokens, "predicted_n": n_tokens, "predicted_ms": _ms(seconds)}
    told["predicted_per_second"] = round((n_tokens - 1) / seconds, 2) if n_tokens > 1 and seconds > 0 else 0.0
    if choice.ttft:
        told["ttft_ms"] = _ms(choice.ttft)
    if started is not None:
        told |= {"cache_n": started.n_cached, "prompt_n": started.n_prompt - started.n_cached}
    return told


def prompt_progress(read: PromptRead) -> dict[str, Any]:
    """Return how much of a prompt was read, in the fields of llama-server."""
    counts = {"total": read.n_prompt, "cache": read.n_cached, "processed": read.n_read}
    return {**counts, "time_ms": round(read.seconds * 1_000)}


def cache_miss(receipts: Sequence[Receipt]) -> dict[str, Any] | None:
    """Return where the first prompt that did so parted from a stored text of its key; None where none did."""
    found = next((receipt.cache_miss for receipt in receipts if receipt.cache_miss is not None), None)
    return asdict(found) if found is not None else None


def _mean(receipts: Sequence[Receipt], values: Sequence[float]) -> float:
    """Return the mean over the generated tokens of all receipts."""
    n_tokens = sum(receipt.n_generated for receipt in receipts)
    weighted = zip(receipts, values, strict=True)
    return sum(receipt.n_generated * value for receipt, value in weighted) / n_tokens if n_tokens else 0.0


def _speedup(receipts: Sequence[Receipt]) -> float | None:
    """Return the mean speed-up; None where it is not known of a choice."""
    known = [receipt.speedup for receipt in receipts if receipt.speedup is not None]
    return round(_mean(receipts, known) or 1.0, 3) if len(known) == len(receipts) else None


def _highest(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return round(max(known), 4) if known else None


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 3)


def _rate(n_tokens: int, seconds: float) -> float:
    return round(n_tokens / seconds, 2) if seconds > 0 else 0.0


# JSON has no infinity; this is what OpenAI says for a token that is next to impossible.
_LOWEST = -9999.0


def chat_logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return the object of a chat choice."""
    return {"content": [token_logprob(token) for token in tokens], "refusal": None}


def token_logprob(token: TokenLogprob, *, with_ids: bool = False) -> dict[str, Any]:
    """Return the object of a token with its alternatives, as all protocols have it."""
    chosen, *others = (
        ({"id": one.token} if with_ids else {})
        | {"token": _text(one), "logprob": _value(one), "bytes": list(one.piece)}
        for one in (token.chosen, *token.top)
    )
    return chosen | {"top_logprobs": others}


def text_logprobs(tokens: Sequence[TokenLogprob], n_chars_before: int) -> dict[str, Any]:
    """Return the object of a text choice; offsets count characters from the start of the choice's text."""
    texts = [_text(token.chosen) for token in tokens]
    offsets, offset = [], n_chars_before
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [_value(token.chosen) for token in tokens],
        "top_logprobs": [_alternatives(token) for token in tokens],
        "text_offset": offsets,
    }


def _alternatives(token: TokenLogprob) -> dict[str, float | None] | None:
    return None if _value(token.chosen) is None else {_text(one): _value(one) for one in token.top}


def _text(one: Logprob) -> str:
    return one.piece.decode("utf-8", "replace")


def _value(one: Logprob) -> float | None:
    """Return a log probability; None for the first token of a prompt, which nothing precedes."""
    return None if math.isnan(one.logprob) else max(one.logprob, _LOWEST)


def fingerprint(model: LoadedModel) -> str:
    """Return a short name for the version, the model and the options: equal where a seed gives the same text."""
    facts = (__version__, model.description, model.n_bytes, model.n_ctx, model.kv_type, model.devices, model.n_threads)
    return "fp_" + hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


class OpenAiReply(Reply):
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, call: Call[Any], run: EngineRun, id_prefix: str, kind: str) -> None:
        body = call.body
        self._call, self._run, self._choices = call, run, run.choices
        # The fields that every object repeats. The id is that of the first request, with another prefix.
        self._repeated = {
            "id": f"{id_prefix}-{run.requests[0].id.partition('-')[2]}",
            "object": kind,
            "created": int(time.time()),
            "model": run.name,
            "system_fingerprint": fingerprint(run.model),
            **marks(run.model, body.wanted_speed, body.service_tier),
        }
        self._n_prompts = len(run.choices) // body.n_choices
        self._includes_usage, self._counts_usage = body.includes_usage, body.counts_usage
        # Most chunks are put together by hand: that runs for every token of every stream.
        self._head = "data: " + json.dumps(self._repeated, separators=(",", ":"))[:-1]
        self._tail = ',"logprobs":null,"finish_reason":null}]'

    async def whole(self) -> dict[str, Any]:
        """Return the object of a call that does not stream."""
        choices = [self._wire(index, choice) for index, choice in enumerate(self._choices)]
        return self._repeated | {"choices": choices, **self._cost()}

    async def closing(self) -> bytes:
        """Return the end of the stream."""
        if not self._includes_usage:
            return DONE
        return encode_event(self._repeated | {"choices": [], **self._cost()}) + DONE

    def _so_far(self, index: int) -> dict[str, Any]:
        """Return what each chunk of a choice says of it so far, where that is asked for."""
        if not self._counts_usage:
            return {}
        choice = self._choices[index]
        n_prompt = choice.started.n_prompt if choice.started is not None else 0
        counts = {"prompt_tokens": n_prompt, "completion_tokens": choice.n_tokens}
        return {"usage": {**counts, "total_tokens": n_prompt + choice.n_tokens}}

    def _progress(self, index: int, content: dict[str, Any], read: PromptRead | None) -> bytes:
        """Return a chunk with how much of the prompt was read; nothing where that is not new."""
        return b"" if read is None else self._chunk(index, content, prompt_progress=prompt_progress(read))

    @abstractmethod
    def _wire(self, index: int, choice: Choice) -> dict[str, Any]: ...

    def _cost(self) -> dict[str, Any]:
        receipts = [choice.end.receipt for choice in self._choices if choice.end is not None]
        return {"usage": self._usage(receipts), "timings": self._timings(receipts)}

    def _usage(self, receipts: list[Receipt]) -> dict[str, Any]:
        return usage(receipts, self._n_prompts)

    def _timings(self, receipts: list[Receipt]) -> dict[str, Any]:
        return timings(receipts)

    def _chunk(
        self,
        index: int,
        content: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        finish_reason: str | None = None,
        **more: Any,
    ) -> bytes:
        choice = {"index": index, **content, "logprobs": logprobs, "finish_reason": finish_reason}
        return encode_event(self._repeated | {"choices": [choice]} | more)
