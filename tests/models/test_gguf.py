"""The header reader: agrees with the gguf package, and never trusts a file."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import gguf
import pytest

from models.gguf.errors import BadGguf, TruncatedGguf
from models.gguf.header import WINDOW_BYTES, StoredArray, StoredText, read_header, read_header_from
from models.gguf.tensor_types import BY_ID, FILE_TYPES
from tests.support.broken_gguf import BROKEN, Broken, array, entry, giant, header, number, string
from tests.support.memory_source import MemorySource
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT

MEGABYTE = 1 << 20


@pytest.fixture(params=[EMBER, EMBER_DRAFT], ids=["ember", "draft"], scope="module")
def model(request):
    return request.param


def test_metadata_equals_what_the_gguf_package_reads(model):
    ours, theirs = read_header(model), gguf.GGUFReader(model)
    fields = {name: field for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
    assert set(ours.metadata) == set(fields)
    for name, field in fields.items():
        value = ours.metadata[name]
        if isinstance(value, StoredArray):
            value = ours.strings(name) or ours.integers(name)
        assert (list(value) if isinstance(value, tuple) else value) == field.contents(), name


def test_tensors_equal_what_the_gguf_package_reads(model):
    ours, theirs = read_header(model), gguf.GGUFReader(model)
    assert ours.data_offset == theirs.data_offset
    assert ours.file_bytes == model.stat().st_size
    assert [(t.name, t.shape, t.type.name, t.n_bytes, t.offset, t.n_elements) for t in ours.tensors] == [
        (t.name, tuple(t.shape), t.tensor_type.name, t.n_bytes, t.data_offset - theirs.data_offset, t.n_elements)
        for t in theirs.tensors
    ]


def test_sizes_and_names_of_types_equal_those_of_the_gguf_package():
    theirs = {int(type_): sizes for type_, sizes in gguf.GGML_QUANT_SIZES.items()}
    # Q8_1 exists only in memory; the package has its older layout.
    theirs.pop(int(gguf.GGMLQuantizationType.Q8_1))
    assert {id_: (BY_ID[id_].block_size, BY_ID[id_].block_bytes) for id_ in theirs} == theirs
    for file_type in gguf.LlamaFileType:
        expected = file_type.name.removeprefix("MOSTLY_").removeprefix("ALL_").removesuffix("_MOE")
        assert FILE_TYPES.get(int(file_type), expected) == expected


def test_weights_are_never_read():
    source = MemorySource(EMBER.read_bytes())
    header_ = read_header_from(source)
    assert max(offset + n for offset, n in source.reads) <= header_.data_offset + WINDOW_BYTES
    assert source.n_read <= header_.data_offset + WINDOW_BYTES


def test_version_2_reads_like_version_3():
    content = EMBER.read_bytes()[:200_000].ljust(EMBER.stat().st_size, b"\0")
    two = read_header_from(MemorySource(content[:4] + struct.pack("<I", 2) + content[8:]))
    assert two.version == 2
    assert two.tensors == read_header(EMBER).tensors


def test_a_big_vocabulary_stays_in_the_file():
    tokens = [f"token{i}" for i in range(200_000)]
    raw = array("tokens", 8, len(tokens), b"".join(string(token) for token in tokens))
    source = MemorySource(header((raw, number("after", 7))))
    tracemalloc.start()
    header_ = read_header_from(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert header_.integer("after") == 7
    assert header_.count("tokens") == 200_000
    assert peak < 4 * WINDOW_BYTES
    assert source.n_read <= len(raw) + WINDOW_BYTES
    assert header_.strings("tokens") == tuple(tokens)


def test_a_long_text_stays_in_the_file_until_asked_for():
    text = "Wörter, " * 100_000
    header_ = read_header_from(MemorySource(header((entry("a", 8, string(text)), number("b", 1)))))
    assert isinstance(header_.metadata["a"], StoredText)
    assert header_.text("a") == text
    assert header_.integer("b") == 1


def test_values_have_their_types():
    header_ = read_header_from(
        MemorySource(
            header(
                (
                    entry("u8", 0, b"\xff"),
                    entry("i8", 1, b"\xff"),
                    entry("i64", 11, struct.pack("<q", -5)),
                    entry("f64", 12, struct.pack("<d", 0.5)),
                    entry("bool", 7, b"\1"),
                    array("flags", 7, 3, b"\1\0\1"),
                    array("words", 8, 2, string("a") + string("ü")),
                    entry("not utf-8", 8, string(b"a\xff")),
                )
            )
        )
    )
    assert dict(header_.metadata) == {
        "u8": 255,
        "i8": -1,
        "i64": -5,
        "f64": 0.5,
        "bool": True,
        "flags": (True, False, True),
        "words": ("a", "ü"),
        "not utf-8": "a\ufffd",
    }
    assert header_.integers("flags") == (1, 0, 1)
    assert header_.integer("bool") is None
    assert header_.text("u8") is None
    assert header_.strings("flags") is None


def test_equal_vocabularies_have_equal_digests():
    ember, draft = read_header(EMBER), read_header(EMBER_DRAFT)
    assert ember.digest("tokenizer.ggml.tokens") == draft.digest("tokenizer.ggml.tokens")
    assert ember.digest("tokenizer.ggml.tokens") != ember.digest("tokenizer.ggml.merges")
    assert ember.digest("general.name") is None


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_each_broken_file_gets_its_own_error(broken: Broken, tmp_path: Path):
    path = tmp_path / "model.gguf"
    broken.write(path)
    tracemalloc.start()
    try:
        with pytest.raises(broken.error) as caught:
            read_header(path)
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    finally:
        tracemalloc.stop()
    assert type(caught.value) is broken.error
    assert broken.says in str(caught.value)
    assert "model.gguf" in str(caught.value)


def test_a_terabyte_model_is_read_at_once(tmp_path):
    header_ = read_header(giant(tmp_path / "giant.gguf"))
    assert header_.file_bytes > 1e12
    assert len(header_.tensors) == 2 + 80 * 9


def test_a_file_that_shrinks_after_it_was_read_says_so(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(EMBER.read_bytes())
    header_ = read_header(path)
    path.write_bytes(b"GGUF")
    with pytest.raises(TruncatedGguf):
        header_.strings("tokenizer.ggml.tokens")


class Hole(MemorySource):
    """Where the content ends, every eight bytes say "a text of 10 MiB"."""

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        raw = super().read_at(offset, n_bytes)
        return raw if offset < len(self.content) else struct.pack("<Q", 10 * MEGABYTE) * (n_bytes // 8)


def test_texts_far_apart_are_given_up_before_they_cost_much():
    content = header((array("a", 8, 1_000_000, struct.pack("<Q", 10 * MEGABYTE)),), tail=0)
    source = Hole(content, total=1 << 44)
    with pytest.raises(BadGguf, match="longer than 128 MiB"):
        read_header_from(source)
    assert source.n_read <= 128 * MEGABYTE


def test_many_small_values_stay_within_the_memory_bound():
    items = struct.pack("<1000i", *range(10**6, 10**6 + 1_000))
    content = header(tuple(array(f"key {i}", 5, 1_000, items) for i in range(2_500)))
    tracemalloc.start()
    header_ = read_header_from(MemorySource(content))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(header_.metadata) == 2_500
    assert peak < 100 * MEGABYTE
    assert header_.integers("key 2499") == tuple(range(10**6, 10**6 + 1_000))
