"""What a dry run says a model would take stands beside the estimate and beside what is really allocated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.llama.library import AllocationLog, listening
from core.llama.model import Model
from core.loading.contexts import open_context
from core.loading.memory_fit import context_size
from core.loading.memory_need import context_shape, dry_run
from core.values.engine_options import EngineOptions, whole_lines
from core.values.errors import LoadFailed
from models.facts.model_facts import read_model
from tests.support.engines import need_of
from tools.model_factory import recurrent_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached

ROUNDING = 32 << 10  # llama.cpp's log rounds to 0.01 MiB
FAMILY = {
    "Ember": None,
    "deep Ember": Recipe(n_layers=24),
    "deep Ember in F16": Recipe(n_layers=12, tensor_type="F16"),
    "Ember with experts": Recipe(n_experts=4, n_experts_used=2),
}


def path_of(name: str) -> Path:
    recipe = FAMILY[name]
    return cached(recipe) if recipe is not None else EMBER


@pytest.mark.parametrize("name", FAMILY)
def test_estimate_dry_run_and_allocation_agree(name):
    options = EngineOptions(str(path_of(name)), n_ctx=1024, n_slots=4)
    facts = read_model(Path(options.model_path))
    tried, estimated, allocated = (
        dry_run(options),
        need_of(facts, options, context_size(facts, options).n_cells),
        load(options),
    )
    assert tried.kv_cache == pytest.approx(allocated.of("KV"), abs=ROUNDING)
    assert tried.compute == pytest.approx(allocated.of("compute") + output_bytes(facts.n_vocab, options), abs=ROUNDING)
    assert tried.weights == pytest.approx(allocated.of("model"), abs=ROUNDING)
    assert estimated.kv_cache == pytest.approx(tried.kv_cache, abs=ROUNDING)
    assert estimated.compute == pytest.approx(tried.compute, rel=0.15)
    assert estimated.total == pytest.approx(tried.total, rel=0.05)


def test_what_windows_cut_off_takes_no_memory(tmp_path):
    options = EngineOptions(str(recurrent_factory.gemma3(tmp_path / "window.gguf", 32)), n_ctx=1024, n_slots=4)
    facts = read_model(Path(options.model_path))
    tried, estimated, allocated = (
        dry_run(options),
        need_of(facts, options, context_size(facts, options).n_cells),
        load(options),
    )
    assert tried.kv_cache == pytest.approx(allocated.of("KV"), abs=ROUNDING)
    assert estimated.kv_cache == pytest.approx(tried.kv_cache, abs=ROUNDING)
    # One layer keeps 4,096 tokens, and three keep 4 windows and the rows of a step.
    assert estimated.kv_cache == pytest.approx((4096 + 3 * 768) * facts.kv_bytes_per_token() / 4, rel=0.01)


def load(options: EngineOptions) -> AllocationLog:
    facts = read_model(Path(options.model_path))
    with listening() as allocated:
        # Without a map of the file, what is allocated for weights is what they take.
        model = Model(options.model_path, replace(options, mmap=False))
        size = context_size(facts, options)
        shape = context_shape(facts, options, size.n_cells, is_recurrent=model.is_recurrent)
        context = open_context(model, options, size, shape)
        context.close()
        model.close()
    return allocated


def output_bytes(n_vocab: int, options: EngineOptions) -> int:
    return n_vocab * 4 * whole_lines(options.n_slots * 17)


def test_a_draft_counts():
    plain = EngineOptions(str(EMBER), n_ctx=1024)
    drafted = replace(plain, draft_path=str(EMBER_DRAFT))
    facts = read_model(EMBER)
    size = context_size(facts, plain)
    need = need_of(facts, drafted, size.n_cells)
    assert need.draft > read_model(EMBER_DRAFT).weight_bytes
    assert need.total - need.draft >= need_of(facts, plain, size.n_cells).total
    assert need_of(facts, replace(drafted, speculation="off"), size.n_cells).draft == 0


def test_a_file_that_is_no_model_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "no.gguf"
    path.write_bytes(b"no model at all")
    with pytest.raises(LoadFailed, match=r"no\.gguf"):
        dry_run(EngineOptions(str(path)))


def test_a_file_that_llama_cpp_does_not_read_is_refused(tmp_path):
    with pytest.raises(LoadFailed, match="no file"):
        dry_run(EngineOptions(str(tmp_path / "missing.gguf")))
