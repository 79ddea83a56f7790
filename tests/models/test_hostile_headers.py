"""No header costs more than a second and 100 MB, whatever it says."""

from __future__ import annotations

import struct
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.facts.model_facts import facts_from
from models.gguf.errors import BadGguf, GgufError
from models.gguf.header import read_header_from
from tests.support.broken_gguf import array, entry, header, string, tensor
from tests.support.hostile_gguf import SEEDS, nested, read_within_bounds, write_corpus
from tests.support.memory_source import MemorySource

SECONDS, MEGABYTES_100 = 1.0, 100_000_000
EDGES = st.sampled_from([0, 1, 2, 8, 31, 32, 512, 2**16, 2**31 - 1, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1])
KEYS = st.sampled_from(
    [
        "general.architecture", "general.alignment", "general.file_type", "general.type", "split.count",
        "llama.block_count", "llama.context_length", "llama.embedding_length", "llama.attention.head_count",
        "llama.attention.head_count_kv", "llama.expert_count", "llama.expert_used_count", "llama.nextn_predict_layers",
        "llama.attention.sliding_window_pattern", "llama.ssm.inner_size", "tokenizer.ggml.tokens",
        "tokenizer.ggml.model", "",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.just("llama"), st.text(max_size=12), st.binary(max_size=12)).map(string)


@st.composite
def _entries(draw) -> bytes:
    """An entry of any type; the counts of arrays may lie."""
    key = draw(KEYS)
    match draw(st.integers(0, 3)):
        case 0:
            return entry(key, 8, draw(TEXTS))
        case 1:
            return array(key, draw(st.integers(0, 13)), draw(EDGES), draw(st.binary(max_size=64)))
        case 2:
            return entry(key, draw(st.integers(0, 13)), struct.pack("<Q", draw(EDGES)))
        case _:
            return entry(key, 4, struct.pack("<I", draw(EDGES) & 0xFFFFFFFF))


_TENSORS = st.builds(
    tensor,
    st.sampled_from(["a", "blk.0.attn_q.weight", "blk.511.ffn_up_exps.weight", "token_embd.weight", "x" * 64]),
    st.lists(EDGES, max_size=5).map(tuple),
    st.integers(0, 45),
    EDGES,
)
_COUNTS = st.one_of(st.none(), EDGES)


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


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(
    st.lists(_entries(), max_size=8),
    st.lists(_TENSORS, max_size=4),
    _COUNTS,
    _COUNTS,
    st.sampled_from([None, 1 << 20, 1 << 44]),
)
def test_a_header_of_any_shape_is_read_or_refused(entries, tensors, n_entries, n_tensors, total):
    content = header(tuple(entries), tuple(tensors), n_entries=n_entries, n_tensors=n_tensors)
    source = MemorySource(content, total=total)
    tracemalloc.start()
    try:
        said = facts_from([read_header_from(source)]).problem
    except GgufError as error:
        said = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert said is None or said.endswith(".")
    assert peak < MEGABYTES_100
    assert source.n_read < 300_000_000
