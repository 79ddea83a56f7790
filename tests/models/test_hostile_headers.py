"""No header costs more than a second and 100 MB, whatever it says."""

from __future__ import annotations

import sys

import pytest

from models.facts.model_facts import facts_from
from models.gguf.errors import BadGguf, GgufError
from models.gguf.header import read_header_from
from tests.support.broken_gguf import entry, header, number, string, tensor
from tests.support.hostile_gguf import SEEDS, mistyped, mutated, nested, read_within_bounds, write_corpus
from tests.support.memory_source import MemorySource

SECONDS, MEGABYTES_100 = 1.0, 100_000_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the bound on a process' memory is read from /proc")
def test_the_corpus_costs_little(tmp_path):
    write_corpus(tmp_path)
    cost = read_within_bounds(tmp_path, MEGABYTES_100)
    assert cost.n_files > SEEDS
    assert cost.seconds < SECONDS, cost
    assert cost.n_bytes < MEGABYTES_100, cost


def test_a_name_is_cut_to_what_can_be_shown():
    named = entry("general.name", 8, string("x" * 100_000))
    facts = facts_from(
        [read_header_from(MemorySource(header((entry("general.architecture", 8, string("llama")), named))))]
    )
    assert facts.title == "x" * 197 + "..."


@pytest.mark.parametrize(("name", "content"), list(nested()), ids=["deep", "wide"])
def test_arrays_of_arrays_are_refused_at_the_first(name, content):
    source = MemorySource(content)
    with pytest.raises(BadGguf, match="array of arrays"):
        read_header_from(source)
    assert source.n_read <= 1 << 20


@pytest.mark.parametrize("made", [mutated, mistyped])
def test_a_random_header_is_read_or_refused_in_a_sentence(made):
    for seed in range(20):
        source = MemorySource(made(seed), total=(None, 1 << 24, 1 << 40)[seed % 3])
        try:
            said = facts_from([read_header_from(source)]).problem
        except GgufError as error:
            said = str(error)
        assert said is None or (said[0].isupper() or said.startswith(source.name)), said
        assert said is None or said.endswith("."), said
        assert source.n_read < MEGABYTES_100


LLAMA = entry("general.architecture", 8, string("llama"))


def test_a_table_without_rows_is_read():
    rowless = header((LLAMA,), (tensor("token_embd.weight", (32, 0)),))
    assert facts_from([read_header_from(MemorySource(rowless))]).weight_bytes == 0


def test_more_prediction_heads_than_blocks_leave_no_layers():
    heads = header((LLAMA, number("llama.block_count", 2), number("llama.nextn_predict_layers", 5)))
    assert facts_from([read_header_from(MemorySource(heads))]).n_layers == 0
