"""A row with a sliding window sees what it sees alone, whatever else its batch writes, which the set-up mends."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import numpy.typing as npt
import pytest

from core.llama.context import Batch, Context, ContextOptions, DecodeStatus
from core.llama.model import Model
from tools.model_factory import recurrent_factory
from tools.model_factory.gguf_factory import cached_file

N_CELLS, N_TEXTS, N_UBATCH = 256, 4, 32


def open_context(model: Model, n_ubatch: int) -> Context:
    return Context(
        model,
        ContextOptions(
            n_cells=N_CELLS,
            n_sequences=N_TEXTS,
            n_outputs=N_TEXTS,
            n_batch=N_CELLS,
            n_ubatch=n_ubatch,
            n_threads=1,
            flash_attention="on",
        ),
    )


def decode(context: Context, *rows: tuple[int, int, list[int]]) -> npt.NDArray[np.float32]:
    """Decode tokens of each (text, position), and return the logits of each one's last."""
    batch = Batch(N_CELLS)
    for text, position, tokens in rows:
        batch.add_run(np.array(tokens, np.int32), position, text, n_wanted=1)
    assert context.decode(batch) is DecodeStatus.OK
    context.synchronize()
    return context.logits(len(rows)).copy()


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    path = cached_file("window-gemma3.gguf", recurrent_factory.gemma3)
    with closing(Model(str(path))) as opened:
        yield opened


def test_no_row_loses_what_it_sees_to_a_later_part_of_its_batch(model: Model) -> None:
    choose = random.Random(1)
    texts: list[list[int]] = [[] for _ in range(N_TEXTS)]
    with closing(open_context(model, N_UBATCH)) as context, closing(open_context(model, N_CELLS)) as alone:
        for _ in range(60):
            new = {text: [choose.randrange(20, 4000) for _ in range(choose.choice([1, 5, 30]))] for text in range(4)}
            while sum(map(len, texts)) + sum(map(len, new.values())) > N_CELLS:
                longest = max(range(N_TEXTS), key=lambda text: len(texts[text]))
                context.remove(longest, 0)
                texts[longest].clear()
            found = decode(context, *((text, len(texts[text]), tokens) for text, tokens in new.items()))
            for text, tokens in new.items():
                texts[text] += tokens
                alone.clear()
                wanted = decode(alone, (0, 0, texts[text]))
                assert np.allclose(found[text], wanted[0], atol=1e-3)
