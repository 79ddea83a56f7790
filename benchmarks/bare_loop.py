"""The minimal decode loop: llama_decode and arg-max."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.engine.engine import Engine
from core.llama.context import Batch, Context, ContextOptions, DecodeStatus


class BareLoop:
    """A separate context on an engine's model, with the same cells, threads, outputs and attention.

    It is separate so that its steps and the engine's can alternate: on a machine whose speed drifts within seconds,
    only adjacent steps can be compared to a percent.
    """

    def __init__(self, engine: Engine, *, n_sequences: int, n_threads: int) -> None:
        theirs = engine.context
        self._batch = Batch(theirs.n_batch)
        self.tokens = np.zeros(0, np.int64)
        self._positions: list[int] = []
        self._context = Context(
            engine.model,
            ContextOptions(
                n_cells=theirs.n_cells,
                n_sequences=n_sequences,
                n_outputs=n_sequences,
                n_batch=theirs.n_batch,
                n_ubatch=engine.context.n_ubatch,
                n_threads=n_threads,
                flash_attention=theirs.flash_attention,
            ),
        )

    def start(self, texts: Sequence[npt.NDArray[np.int32]]) -> None:
        """Clear the context and prefill these tokens, one text per sequence."""
        self._context.clear()
        self.tokens = np.zeros(len(texts), np.int64)
        for sequence, tokens in enumerate(texts):
            self._batch.clear()
            self._batch.add_run(tokens, 0, sequence, n_wanted=1)
            self._decode()
            self.tokens[sequence] = self._context.logits(1)[0].argmax()
        self._positions = [len(tokens) for tokens in texts]

    def step(self) -> None:
        """Decode one token of every sequence."""
        self._batch.clear()
        for sequence, (token, position) in enumerate(zip(self.tokens, self._positions, strict=True)):
            self._batch.add(int(token), position, sequence)
        self._decode()
        self.tokens = self._context.logits(len(self.tokens)).argmax(axis=1)
        self._positions = [position + 1 for position in self._positions]

    def _decode(self) -> None:
        assert self._context.decode(self._batch) is DecodeStatus.OK
        self._context.synchronize()

    def close(self) -> None:
        """Free the context; the model stays the engine's."""
        self._context.close()
