"""What happens to drafted steps from outside: a cancel, a verification that is broken off, a wrong token."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from core.engine.engine import Engine
from core.llama.context import Batch, Context, DecodeStatus
from core.llama.library import L, ggml
from core.llama.sampler_chain import Candidates
from core.scheduler.input_processor import InputProcessor, PreparedRequest
from core.values.messages import FinishReason
from core.values.request import Request
from tests.support.engines import Ledger, run, submit


class _TensorHead(ctypes.Structure):
    """The first fields of ``ggml_tensor``: all that ``ggml_is_empty`` reads."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("rest", ctypes.c_byte * 512),
    )


@contextmanager
def aborting(context: Context) -> Iterator[None]:
    """Let a context's decodes end early inside the block, at the next operation (``llama_set_abort_callback``).

    The callback is ``ggml_is_empty`` itself, given a made-up tensor that is empty: no Python runs in llama.cpp's
    threads.
    """
    empty = _TensorHead()
    callback = L.ggml_abort_callback(ctypes.cast(ggml.ggml_is_empty, ctypes.c_void_p).value)
    L.llama_set_abort_callback(context.c, callback, ctypes.cast(ctypes.pointer(empty), ctypes.c_void_p))
    try:
        yield
    finally:
        L.llama_set_abort_callback(context.c, L.ggml_abort_callback(), None)


def cancel_between_steps(engine: Engine, prompts: Iterable[str], steps: Iterable[int], **fields: Any) -> None:
    """For each number of ``steps`` run three requests so far and cancel the second: the cache must be right."""
    three = tuple(prompts)[:3]
    for n_steps in steps:
        ledger = Ledger()
        for index, prompt in enumerate(three):
            submit(engine, str(index), prompt, **fields)
        for _ in range(n_steps):
            ledger.add(engine.step())
        engine.cancel("1")
        ledger.add(engine.step())
        assert ledger.ended["1"].reason is FinishReason.CANCELLED
        for slot in engine.slots.slots:
            assert engine.context.last_position(slot.id) == slot.n_resident - 1
        run(engine, ledger)


def break_off_verifications(engine: Engine) -> Ledger:
    """Run what was submitted to its end; after 1, 2, 3 and 4 more steps the next decode is aborted."""
    ledger = Ledger()
    for n_steps in range(1, 5):
        for _ in range(n_steps):
            ledger.add(engine.step())
        decode = engine.context.decode

        def broken_off(batch: Batch, decode: Callable[[Batch], DecodeStatus] = decode) -> DecodeStatus:
            with aborting(engine.context):
                return decode(batch)

        engine.context.decode = broken_off
        ledger.add(engine.step())
        engine.context.decode = decode
    return run(engine, ledger)


def take_wrongly(monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    """Let every engine take the token 77 at ``position`` of a reply that may be drafted for."""
    prepare = InputProcessor.prepare

    def prepared(intake: InputProcessor, request: Request, *tokens: Any) -> PreparedRequest:
        found = prepare(intake, request, *tokens)
        sampler, choose, wrong_at = found.sampler, found.sampler.choose, len(found.tokens) + position

        def chosen(logits: Any, at: int, candidates: Candidates) -> int:
            return 77 if at == wrong_at else choose(logits, at, candidates)

        if request.speculates:
            sampler.is_plain_greedy, sampler.choose = False, chosen
        return found

    monkeypatch.setattr(InputProcessor, "prepare", prepared)
