"""Times the decoding of a loaded engine: a few tokens of one request after a prompt of a given length."""

from __future__ import annotations

from dataclasses import dataclass

from core.engine.engine import Engine
from core.values.events import Ended, FinishReason
from core.values.request import Request
from core.values.sampling_params import SamplingParams

_FIRST_TOKENS = 16
# More would change the context length too much.
_MOST_TOKENS = 128


@dataclass(frozen=True, slots=True)
class DecodeTiming:
    """Mean ``seconds`` per token over ``n_tokens``; the middle one attended to ``n_past`` others."""

    n_past: int
    n_tokens: int
    seconds: float


def time_decoding(engine: Engine, n_prompt: int, seconds: float) -> DecodeTiming:
    """Decode without drafts after ``n_prompt`` tokens for about ``seconds``; raises RuntimeError if a request fails."""
    first = _decode(engine, n_prompt, _FIRST_TOKENS)
    room = engine.n_ctx - n_prompt
    n_tokens = min(max(_FIRST_TOKENS, round(seconds / max(first, 1e-6))), _MOST_TOKENS, room)
    return DecodeTiming(n_prompt + n_tokens // 2, n_tokens, _decode(engine, n_prompt, n_tokens))


def _decode(engine: Engine, n_prompt: int, n_tokens: int) -> float:
    """Return the seconds per token after the first."""
    prompt = tuple(1 + position % 61 for position in range(n_prompt))
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    request = Request("timing", prompt, n_tokens, sampling=sampling, speculates=False)
    engine.submit(engine.prepare(request))
    while not engine.is_idle:
        for event in engine.step():
            if isinstance(event, Ended):
                if event.reason is FinishReason.FAILED or event.receipt.decode_rate <= 0:
                    raise RuntimeError(f"Decoding could not be timed: {event.failure}")
                taken = 1.0 / event.receipt.decode_rate
    return taken
