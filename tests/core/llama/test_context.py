"""Outputs are asked for in whole cache lines."""

from __future__ import annotations

import pytest

from core.llama.context import Context, ContextOptions
from core.llama.model import Model
from core.values.engine_options import whole_lines
from tools.model_factory.gguf_factory import EMBER


@pytest.mark.parametrize(("wanted", "taken"), [(1, 16), (16, 16), (17, 32), (52, 64), (64, 64), (129, 144)])
def test_indices_of_outputs_fill_lines(wanted, taken):
    assert whole_lines(wanted) == taken


@pytest.mark.parametrize(("n_outputs", "n_batch", "taken"), [(17, 512, 32), (32, 512, 32), (5, 8, 8), (1, 1, 1)])
def test_a_context_has_as_many_but_no_more_than_a_batch_has_rows(n_outputs, n_batch, taken):
    model = Model(str(EMBER))
    context = Context(
        model,
        ContextOptions(n_cells=256, n_sequences=1, n_outputs=n_outputs, n_batch=n_batch, n_ubatch=n_batch, n_threads=1),
    )
    assert context.n_outputs == taken
    context.close()
    model.close()
