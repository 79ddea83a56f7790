"""llama.cpp keeps the graphs of narrow batches, which the set-up adds to it: they still compute what they should."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from core.llama.build import features
from core.llama.context import Batch, Context, ContextOptions, DecodeStatus
from core.llama.library import L
from core.llama.model import Model
from tests.support.prompts import EMBER
from tools.model_factory import hybrid_factory, recurrent_factory

# llama.cpp's own switch: a graph is built for every batch.
SWITCH = "LLAMA_GRAPH_REUSE_DISABLE"
N_SEQUENCES, N_CELLS, WIDEST = 3, 512, 40


@contextmanager
def opened(path: Path, n_ubatch: int = 512, *, builds_each: bool = False) -> Iterator[Context]:
    before = os.environ.pop(SWITCH, None)
    if builds_each:
        os.environ[SWITCH] = "1"
    try:
        with closing(Model(str(path))) as model:
            context = Context(
                model,
                ContextOptions(
                    n_cells=N_CELLS,
                    n_sequences=N_SEQUENCES,
                    n_outputs=WIDEST,
                    n_batch=n_ubatch,
                    n_ubatch=n_ubatch,
                    n_threads=2,
                ),
            )
            with closing(context):
                yield context
    finally:
        os.environ.pop(SWITCH, None)
        if before is not None:
            os.environ[SWITCH] = before


class Texts:
    """Texts of one context that grow by random tokens; the same seed, the same texts."""

    def __init__(self, context: Context, seed: int = 1) -> None:
        self.context = context
        self._batch = Batch(WIDEST)
        self._sizes = [0] * N_SEQUENCES
        self._random = random.Random(seed)

    def grow(self, rows_of: dict[int, int]) -> npt.NDArray[np.float32]:
        """Add so many tokens to each text and return the logits of all of them."""
        self._batch.clear()
        for text, n_rows in rows_of.items():
            for _ in range(n_rows):
                self._batch.add(self._random.randrange(7, 250), self._sizes[text], text)
                self._sizes[text] += 1
        assert self.context.decode(self._batch) is DecodeStatus.OK
        self.context.synchronize()
        return self.context.logits(sum(rows_of.values())).copy()

    def cut(self, text: int, size: int) -> bool:
        """Drop all but the first ``size`` tokens; False where that is not possible."""
        if not self.context.remove(text, size):
            return False
        self._sizes[text] = size
        return True

    def size(self, text: int) -> int:
        """Return how many tokens a text has."""
        return self._sizes[text]

    @property
    def n_kept(self) -> int:
        """How often a graph was there already (``llama_perf_context``)."""
        return int(L.llama_perf_context(self.context.c).n_reused)


def script(seed: int) -> Iterator[tuple[dict[int, int], int | None]]:
    """Steps of one to three texts and one to 40 rows, most of them narrow, and which text is cut short after each."""
    chooser = random.Random(seed)
    for _ in range(60):
        texts = chooser.sample(range(N_SEQUENCES), chooser.randint(1, N_SEQUENCES))
        most = WIDEST // len(texts) if chooser.random() < 0.1 else 4
        yield {text: chooser.randint(1, most) for text in texts}, chooser.choice([None, None, *texts])


def test_the_build_keeps_graphs() -> None:
    assert "SLIPSTREAM_GRAPHS" in features()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: EMBER,
        recurrent_factory.mamba,
        recurrent_factory.lfm2,
        recurrent_factory.gemma3,
        hybrid_factory.qwen35,
        hybrid_factory.qwen3next,
    ],
    ids=["ember", "mamba", "lfm2", "gemma3", "qwen35", "qwen3next"],
)
def test_steps_of_many_widths_give_what_a_graph_for_each_gives(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path / "model.gguf")
    with ExitStack() as stack:
        kept = Texts(stack.enter_context(opened(path)))
        built = Texts(stack.enter_context(opened(path, builds_each=True)))
        for step, (rows_of, text) in enumerate(script(seed=5)):
            if text is not None and kept.size(text) > 60:
                assert kept.cut(text, 0)
                assert built.cut(text, 0)
            elif text is not None and kept.size(text) > 3 and kept.cut(text, kept.size(text) - 2):
                assert built.cut(text, kept.size(text))
            assert np.array_equal(kept.grow(rows_of), built.grow(rows_of)), f"step {step}: {rows_of}"
        assert kept.n_kept > built.n_kept == 0


def test_the_graph_of_a_width_is_there_when_it_comes_again() -> None:
    with opened(EMBER) as context:
        texts = Texts(context)
        for n_rows in (1, 4, 2, 8):
            texts.grow({0: n_rows})
        before = texts.n_kept
        for n_rows in (2, 1, 8, 4, 4, 1):
            texts.grow({0: n_rows})
        assert texts.n_kept - before == 6


def test_a_wide_batch_between_them_leaves_kept_graphs_alone() -> None:
    with opened(EMBER) as context:
        texts = Texts(context)
        texts.grow({0: 1})
        texts.grow({0: WIDEST})
        before = texts.n_kept
        texts.grow({0: 1})
        assert texts.n_kept - before == 1


def test_the_graphs_of_the_widths_used_last_are_kept() -> None:
    with opened(EMBER) as context:
        texts = Texts(context)
        for n_rows in range(1, 17):  # 136 together, of which 128 are kept
            texts.grow({0: n_rows})
        before = texts.n_kept
        texts.grow({0: 16})
        texts.grow({0: 5})
        assert texts.n_kept - before == 2
        texts.grow({0: 4})
        assert texts.n_kept - before == 2


def test_kept_graphs_have_a_quarter_of_the_rows_of_the_context() -> None:
    with opened(EMBER, n_ubatch=64) as context:
        texts = Texts(context)
        for n_rows in (10, 6, 10, 6):
            texts.grow({0: n_rows})
        assert texts.n_kept == 2
        texts.grow({0: 7})  # in place of 10, which was not used for longest
        texts.grow({0: 6})
        assert texts.n_kept == 3
        texts.grow({0: 10})
        assert texts.n_kept == 3
        before = texts.n_kept
        for n_rows in (17, 18, 17, 18):  # more than a quarter
            texts.grow({0: n_rows})
        assert texts.n_kept == before
        texts.grow({0: 10})
        assert texts.n_kept - before == 1


def test_a_cache_that_moves_its_cells_leaves_no_graph_behind() -> None:
    with ExitStack() as stack:
        kept = Texts(stack.enter_context(opened(EMBER)))
        built = Texts(stack.enter_context(opened(EMBER, builds_each=True)))
        for texts in (kept, built):
            for n_rows in (30, 1, 3, 1):
                texts.grow({0: n_rows})
            # The cells behind the gap are moved up to it: the cache rotates its keys before the next step.
            memory = L.llama_get_memory(texts.context.c)
            assert texts.context.remove(0, 5, 10)
            L.llama_memory_seq_add(memory, 0, 10, -1, -5)
            texts.cut(0, texts.size(0) - 5)
        for n_rows in (1, 3, 1, 3):
            assert np.array_equal(kept.grow({0: n_rows}), built.grow({0: n_rows}))
