"""Texts that share a cache get their cells in blocks, which the set-up adds to llama.cpp, and all cells can be used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from itertools import groupby
from pathlib import Path

from core.llama.context import Batch, Context, ContextOptions, DecodeStatus
from core.llama.model import Model
from tests.support.prompts import EMBER

ROOT = Path(__file__).resolve().parents[3]
N_CELLS, N_TEXTS, BLOCK = 512, 4, 32


def open_context(model: Model) -> Context:
    return Context(
        model,
        ContextOptions(n_cells=N_CELLS, n_sequences=N_TEXTS, n_outputs=8, n_batch=64, n_ubatch=64, n_threads=1),
    )


def decode(context: Context, *rows: tuple[int, int]) -> DecodeStatus:
    """Decode one row for each (text, position)."""
    batch = Batch(64)
    for sequence, position in rows:
        batch.add(9, position, sequence)
    return context.decode(batch)


def write_in_turns() -> None:
    """Write texts in turns, one of which loses three drafted tokens after each step. Runs in a process of its own."""
    with closing(Model(str(EMBER))) as model, closing(open_context(model)) as context:
        for position in range(70):
            rows = [(text, position) for text in range(3)]
            decode(context, *rows, *((3, position + ahead) for ahead in range(4)))
            context.remove(3, position + 1)
        decode(context, (0, 70))


def write_after_a_long_text() -> None:
    """Write a short text in place of a long one. Runs in a process of its own."""
    with closing(Model(str(EMBER))) as model, closing(open_context(model)) as context:
        for position in range(N_CELLS - BLOCK):
            decode(context, (0, position))
        context.remove(0, 0)
        decode(context, (0, 0))
        decode(context, (0, 1))


def cells_after(function: str) -> str:
    """Return which text has each cell when a function of this module decodes its last batch."""
    program = f"from tests.core.llama.test_cells_in_blocks import {function}; {function}()"
    # llama.cpp prints it, 256 in a line.
    environment = {**os.environ, "LLAMA_KV_CACHE_DEBUG": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    lines = re.findall(r"^([.M\d]{256}) \*$", done.stderr, re.MULTILINE)
    return "".join(lines[-N_CELLS // 256 :])


def test_a_text_in_place_of_a_longer_one_has_the_first_cells():
    # Attention on a GPU goes over all cells up to the last one in use.
    assert cells_after("write_after_a_long_text").startswith("0.")


def test_texts_that_are_written_in_turns_have_their_cells_in_blocks():
    runs = [(text, len(list(run))) for text, run in groupby(cells_after("write_in_turns"))]
    # Drafts that reached into the next block leave no hole in the one before.
    for text in "0123":
        assert [length for owner, length in runs if owner == text] == [BLOCK, BLOCK, 70 - 2 * BLOCK]


def test_every_cell_can_be_used():
    with closing(Model(str(EMBER))) as model, closing(open_context(model)) as context:
        for position in range(N_CELLS // N_TEXTS - 20):
            assert decode(context, *((text, position) for text in range(N_TEXTS))) is DecodeStatus.OK
        # No block is free any more, and some cells of each text's last one are.
        for position in range(N_CELLS // N_TEXTS - 20, N_CELLS // N_TEXTS + 60):
            assert decode(context, (0, position)) is DecodeStatus.OK
        assert decode(context, (1, N_CELLS // N_TEXTS - 20)) is DecodeStatus.NO_KV_SLOT
