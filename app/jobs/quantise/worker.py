"""The quantising process: says how large the result will be, writes it when told to, and loads it."""

from __future__ import annotations

import errno
import faulthandler
import hashlib
import os
import queue
import shutil
import sys
import threading
from pathlib import Path

from app.jobs.quantise.messages import Failed, FileWritten, Go, QuantiseTask, Sized, Stepped, Verified
from core.process.child_process import Pipe, PipeClosed, die_with_parent, leave_signals_to_the_parent, own_streams
from core.values.errors import SlipstreamError
from models.facts.model_facts import read_model
from models.facts.split_files import parts
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.gguf.errors import GgufError
from models.gguf.header import read_header

_EXIT_FAILED = 70  # as in sysexits.h: an error of ours
_PROBE = "The quick brown fox jumps over the lazy dog."
_FULL_BELOW = 1 << 20  # bytes that are free on a disk that counts as full


class BrokenResult(SlipstreamError):
    """The written file does not load, or does not compute."""


def main() -> int:
    """Carry out the first message; leave when the pipe closes."""
    faulthandler.enable()
    leave_signals_to_the_parent()
    pipe = own_streams()
    die_with_parent()
    try:
        order: QuantiseTask = pipe.receive()
        _carry_out(order, pipe, _follow(pipe))
    except PipeClosed:
        return 0
    except (SlipstreamError, GgufError) as error:
        pipe.send(Failed(str(error)))
        return _EXIT_FAILED
    except OSError as error:
        pipe.send(Failed(system_reason(error)))
        return _EXIT_FAILED
    return 0


def _follow(pipe: Pipe) -> queue.SimpleQueue[Go]:
    """Read the pipe on a thread: when the other side is gone, nobody waits for the result."""
    told: queue.SimpleQueue[Go] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                told.put(pipe.receive())
        except PipeClosed:
            os._exit(0)

    threading.Thread(target=read, name="reader", daemon=True).start()
    return told


def _carry_out(order: QuantiseTask, pipe: Pipe, told: queue.SimpleQueue[Go]) -> None:
    from core.llama.model import QuantiserRefused, quantise

    def run(target: str | None, steps: _Steps | None = None) -> tuple[int, int, int]:
        done = quantise(
            order.source,
            target,
            file_type=order.file_type,
            n_threads=order.n_threads,
            may_requantise=order.may_requantise,
            progress=steps.begin if steps else lambda name: None,
        )
        return done.n_bytes, done.n_tensors, done.n_fallback

    pipe.send(Sized(run(None)[0]))
    told.get()
    try:
        _, n_tensors, n_fallback = run(order.target, _Steps(order.source, pipe))
    except QuantiserRefused as refusal:
        # C++ tells no more than "iostream error".
        if "iostream" in str(refusal) and shutil.disk_usage(Path(order.target).parent).free < _FULL_BELOW:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from refusal
        raise
    pipe.send(FileWritten(n_tensors, n_fallback))
    check_result(Path(order.target), order.n_threads)
    pipe.send(Verified(_sha256(Path(order.target))))


class _Steps:
    """Turns the names of tensors into bytes of the source that are done."""

    def __init__(self, source: str, pipe: Pipe) -> None:
        headers = [read_header(path) for path in parts(Path(source))]
        self._bytes = {tensor.name: tensor.n_bytes for header in headers for tensor in header.tensors}
        self._pipe = pipe
        self._n_done = self._n_current = 0

    def begin(self, name: str) -> None:
        """The turn of this tensor has come: the one before is done."""
        self._n_done += self._n_current
        self._n_current = self._bytes.get(name, 0)
        self._pipe.send(Stepped(self._n_done))


def check_result(path: Path, n_threads: int) -> None:
    """Load the model at ``path`` and read a sentence with it; raises BrokenResult or LoadFailed."""
    import numpy as np

    from core.llama.context import Batch, Context, ContextOptions, DecodeStatus
    from core.llama.model import Model, Vocab

    facts = read_model(path)
    if facts.problem is not None:
        raise BrokenResult(facts.problem)
    model = Model(str(path))
    try:
        tokens = Vocab(model).tokenize(_PROBE)
        batch = Batch(len(tokens))
        batch.add_run(tokens, 0, 0, n_wanted=1)
        context = Context(
            model,
            ContextOptions(
                n_cells=256, n_sequences=1, n_outputs=1, n_batch=len(tokens), n_ubatch=len(tokens), n_threads=n_threads
            ),
        )
        try:
            status = context.decode(batch)
            context.synchronize()
            if status is not DecodeStatus.OK:
                raise BrokenResult("It loads, but does not compute ({name}).", name=status.name)
            if not np.isfinite(context.logits(1)).all():
                raise BrokenResult(Sentence("It loads, but computes what are no numbers: the source may be damaged."))
        finally:
            context.close()
    finally:
        model.close()


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)
