"""What a header says about its model, for many kinds of models."""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct
from pathlib import Path

import pytest

from models.facts.architectures import TEXT, why_not
from models.facts.model_facts import ModelFacts, WeightBytes, facts_from, read_model
from models.facts.projector import projector_beside
from models.facts.split_files import is_listed, model_name, parts
from models.gguf.errors import BadGguf, GgufError
from models.gguf.header import read_header_from
from tests.support.broken_gguf import UNUSABLE, Unusable, array, entry, header, number, string, tensor
from tests.support.memory_source import MemorySource
from tests.support.ordinary_user import ordinary_user
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, deep_ember, moe_ember
from tools.model_factory.projector_factory import projector

Shapes = dict[str, tuple[int, ...]]


def facts_of(architecture: str, numbers: dict[str, int | list[int]], shapes: Shapes | None = None) -> ModelFacts:
    """Facts of a made-up model with F32 tensors."""
    entries = [entry("general.architecture", 8, string(architecture))]
    entries += [_entry(f"{architecture}.{key}", value) for key, value in numbers.items()]
    tensors, offset = [], 0
    for name, shape in (shapes or {"blk.0.attn_k.weight": (8,)}).items():
        n_bytes = 4
        for length in shape:
            n_bytes *= length
        tensors.append(tensor(name, shape, 0, offset))
        offset += -(-n_bytes // 32) * 32
    content = header(tuple(entries), tuple(tensors))
    return facts_from([read_header_from(MemorySource(content, total=len(content) + offset))])


def _entry(key: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return number(key, value)
    return array(key, 4, len(value), struct.pack(f"<{len(value)}I", *value))


def test_ember():
    facts = read_model(EMBER)
    assert (facts.architecture, facts.title, facts.licence, facts.quantisation) == ("llama", "Ember", "MIT", "Q8_0")
    assert facts.n_params == facts.n_active_params == 11_309_952
    assert facts.n_bytes == EMBER.stat().st_size
    assert (facts.n_ctx_train, facts.n_layers, facts.n_vocab, facts.n_embd) == (1024, 6, 4096, 384)
    assert (facts.n_heads, facts.n_kv_heads, facts.key_length, facts.value_length) == (6, (3,) * 6, 64, 64)
    assert facts.tokenizer == "gpt2"
    assert facts.has_chat_template
    assert facts.problem is None
    # Its output is its table: a token reads all weights and one row.
    assert facts.active_bytes_per_token == facts.weight_bytes + 384 // 32 * 34
    sizes = [facts.kv_bytes_per_token(kv_type) for kv_type in ("f16", "q8_0", "q4_0", "F32")]
    assert sizes == [4608, 2448, 1296, 9216]
    assert read_model(EMBER_DRAFT).tokenizer == facts.tokenizer


def test_experts_are_read_in_part(tmp_path):
    dense = read_model(EMBER)
    facts = read_model(moe_ember(tmp_path / "moe.gguf", n_experts=8, n_used=2))
    feed_forward = 6 * 3 * 417_792
    router = 6 * 8 * 384 * 4
    assert (facts.n_experts, facts.n_experts_used) == (8, 2)
    assert facts.weight_bytes == dense.weight_bytes + 7 * feed_forward + router
    assert facts.active_bytes_per_token == dense.active_bytes_per_token + feed_forward + router
    assert facts.n_active_params == dense.n_params + 6 * 3 * 384 * 1024 + 6 * 8 * 384
    assert facts.problem is None


def test_more_rows_touch_more_experts():
    weights = WeightBytes(shared=100, experts=800, n_experts=8, n_experts_used=2)
    assert weights.read_by(1) == 300
    assert weights.read_by(2) == 100 + 350
    assert 890 < weights.read_by(16) < 900
    assert WeightBytes(100, 0, 1, 0).read_by(16) == 100


def test_layers_may_differ_in_heads_lengths_and_share_a_cache():
    numbers: dict[str, int | list[int]] = {"block_count": 3, "embedding_length": 64, "attention.head_count": [8, 4, 8]}
    facts = facts_of("llama", numbers | {"attention.head_count_kv": [2, 1, 0], "attention.key_length": 16})
    assert facts.n_kv_heads == (2, 1, 0)
    assert facts.kv_bytes_per_token() == (2 + 1) * (16 + 64 // 8) * 2
    numbers = {"block_count": 3, "embedding_length": 64, "attention.head_count": 4}
    numbers |= {"attention.sliding_window": 512, "attention.sliding_window_pattern": [1, 1, 0]}
    numbers |= {"attention.key_length": 32, "attention.value_length": 32}
    numbers |= {"attention.key_length_swa": 16, "attention.value_length_swa": 16}
    facts = facts_of("gemma4", numbers)
    assert facts.kv_bytes_per_token() == 4 * (32 + 32 + 64) * 2
    numbers = {"block_count": 10, "embedding_length": 64, "attention.head_count": 4}
    assert len(facts_of("gemma4", numbers | {"attention.shared_kv_layers": 4}).caches) == 6
    assert len(facts_of("gemma3n", numbers | {"block_count": 30}).caches) == 20


def test_latent_attention_keeps_keys_only():
    numbers = {"block_count": 2, "embedding_length": 2048, "attention.head_count": 16, "attention.head_count_kv": 1}
    numbers |= {"attention.key_length": 576, "attention.value_length": 512}
    facts = facts_of("deepseek2", numbers | {"attention.key_length_mla": 192, "attention.value_length_mla": 128})
    assert facts.kv_bytes_per_token() == 2 * 576 * 2
    assert facts_of("deepseek2", numbers).kv_bytes_per_token() == 2 * (576 + 512) * 2


def test_recurrent_layers_keep_a_state_and_no_cache():
    numbers: dict[str, int | list[int]] = {"block_count": 2, "embedding_length": 64, "attention.head_count": 4}
    numbers |= {"ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16, "ssm.group_count": 2}
    shapes: Shapes = {"blk.0.ssm_out.weight": (8,), "blk.1.attn_k.weight": (8,)}
    facts = facts_of("qwen3next", numbers, shapes)
    assert len(facts.caches) == 1
    assert facts.state_elements == 3 * (128 + 2 * 2 * 16) + 128 * 16
    both = facts_of("falcon-h1", numbers, shapes)
    assert len(both.caches) == 2
    numbers |= {"kda.head_dim": 8}
    assert facts_of("kimi-linear", numbers, shapes).state_elements == 4 * 8 * (3 * 3 + 8)


def test_prediction_heads_are_no_layers_and_are_not_read():
    numbers = {"block_count": 2, "nextn_predict_layers": 1, "embedding_length": 8, "attention.head_count": 1}
    facts = facts_of("glm4moe", numbers, {"blk.0.attn_k.weight": (8,), "blk.1.attn_k.weight": (800,)})
    assert facts.n_layers == 1
    assert facts.active_bytes_per_token == facts.n_active_params * 4 == 32
    assert facts.n_params == 808


def test_prediction_heads_count_where_all_their_weights_are_in_the_file():
    numbers = {"block_count": 3, "nextn_predict_layers": 2, "embedding_length": 8, "attention.head_count": 1}
    shapes: Shapes = {"token_embd.weight": (8, 10), "blk.1.attn_k.weight": (8,), "blk.2.attn_k.weight": (8,)}
    shapes["blk.1.nextn.eh_proj.weight"] = (16, 8)
    assert facts_of("glm4moe", numbers, shapes).n_mtp_layers == 0
    shapes["blk.2.nextn.eh_proj.weight"] = (16, 8)
    facts = facts_of("glm4moe", numbers, shapes)
    assert facts.n_mtp_layers == 2
    # One head: its block, and the embeddings as its output.
    assert facts.mtp_weights.read_by(1) == (8 + 16 * 8 + 8 * 10) * 4


@pytest.mark.parametrize("tensor_type", ["F16", "Q4_0"])
def test_types_name_the_quantisation(tensor_type, tmp_path):
    facts = read_model(deep_ember(tmp_path / "ember.gguf", 2, tensor_type=tensor_type))
    assert facts.quantisation == tensor_type
    assert facts.n_layers == 2
    assert facts_of("llama", {"block_count": 1}).quantisation == "F32", "as its tensors are"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("block_count", 513),
        ("attention.head_count", 1 << 20),
        ("attention.head_count_kv", [1] * 600),
        ("expert_count", 5000),
        ("embedding_length", (1 << 31) + 1),
    ],
)
def test_absurd_numbers_are_refused(key, value):
    with pytest.raises(BadGguf, match=re.escape(key)):
        facts_of("llama", {"block_count": 2} | {key: value})


@pytest.mark.parametrize("unusable", UNUSABLE, ids=lambda unusable: unusable.name)
def test_each_unusable_file_says_why(unusable: Unusable, tmp_path: Path):
    path = tmp_path / "model.gguf"
    unusable.write(path)
    try:
        told = read_model(path).problem
    except GgufError as error:
        told = str(error)
    assert told is not None
    assert unusable.says in told


class TestSplitFiles:
    """One model in several files."""

    def _split(self, folder: Path, n_parts: int = 3) -> list[Path]:
        files = [folder / f"big-model-{i:05}-of-{n_parts:05}.gguf" for i in range(1, n_parts + 1)]
        keys = {"block_count": 3, "embedding_length": 8, "context_length": 64, "attention.head_count": 1}
        first = [entry("general.architecture", 8, string("llama"))] + [_entry(f"llama.{k}", v) for k, v in keys.items()]
        for i, file in enumerate(files):
            entries = [*(first if i == 0 else []), number("split.count", n_parts), number("split.no", i)]
            file.write_bytes(header(tuple(entries), (tensor(f"blk.{i}.attn_k.weight", (8,)),)))
        return files

    def test_parts_are_counted_as_one(self, tmp_path):
        files = self._split(tmp_path)
        for file in files:
            facts = read_model(file)
            assert facts.files == tuple(files)
            assert facts.n_params == 24
            assert facts.n_bytes == sum(part.stat().st_size for part in files)

    @pytest.mark.parametrize("missing", [0, 1, 2])
    def test_a_missing_part_is_named(self, missing, tmp_path):
        files = self._split(tmp_path)
        files[missing].unlink()
        with pytest.raises(GgufError, match=rf"Part {missing + 1} of 3 is missing: {files[missing].name}"):
            read_model(files[missing - 1])

    def test_parts_that_may_not_be_read_are_not_called_missing(self):
        with ordinary_user() as folder:
            file = self._split(folder)[0]
            folder.chmod(0)
            with pytest.raises(GgufError, match="You are not allowed to read"):
                read_model(file)
            folder.chmod(0o700)

    def test_a_renamed_part_says_so(self, tmp_path):
        file = self._split(tmp_path)[0]
        with pytest.raises(BadGguf, match="one of 3 parts, and 1 were found"):
            read_model(file.rename(tmp_path / "mine.gguf"))

    def test_names(self, tmp_path):
        files = self._split(tmp_path)
        assert model_name(files[1]) == "big-model"
        assert model_name(Path("a/b.c-Q4_K_M.gguf")) == "b.c-Q4_K_M"
        assert [is_listed(file) for file in files] == [True, False, False]
        files[0].unlink()
        assert [is_listed(file) for file in files] == [False, True, False]
        assert len(parts(Path("x-00001-of-99999.gguf"))) == 1


def test_every_architecture_is_known_to_llama_cpp():
    spec = importlib.util.find_spec("llama_cpp")
    (folder,) = spec.submodule_search_locations
    binary = next(Path(folder).glob("lib/*llama.*")).read_bytes()
    assert [name for name in TEXT if name.encode() + b"\0" not in binary] == []
    assert why_not("llama") is None
    assert "'" + "x" * 37 + "...'" in (why_not("x" * 1000) or "")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([], None),
        (["mmproj-F16.gguf"], "mmproj-F16.gguf"),
        (["mmproj-model-f16.gguf"], "mmproj-model-f16.gguf"),
        (["mmproj-Ember-Q8_0.gguf", "mmproj-Ember-F16.gguf"], "mmproj-Ember-F16.gguf"),
        (["ember.mmproj-BF16.gguf", "ember.mmproj-F32.gguf"], "ember.mmproj-BF16.gguf"),
        (["mmproj-Gemma-3-F16.gguf"], None),
        (["projector.gguf"], None),
    ],
)
def test_belongs_by_its_name(tmp_path: Path, files: list[str], found: str | None) -> None:
    model = tmp_path / "Ember-Q4_K_M.gguf"
    shutil.copy(EMBER, model)
    for name in files:
        shutil.copy(projector("gemma3"), tmp_path / name)
    path = projector_beside(model)
    assert (path.name if path is not None else None) == found


@pytest.mark.parametrize("source", [EMBER, Path(__file__)], ids=["model", "text"])
def test_another_file_by_that_name_is_none(tmp_path: Path, source: Path) -> None:
    model = tmp_path / "ember.gguf"
    shutil.copy(EMBER, model)
    shutil.copy(source, tmp_path / "mmproj-F16.gguf")
    assert projector_beside(model) is None


def test_the_header_of_a_file_is_read_once_until_the_file_changes(tmp_path: Path) -> None:
    path = Path(shutil.copy(EMBER_DRAFT, tmp_path / "model.gguf"))
    first = read_model(path)
    assert read_model(path) is first
    path.write_bytes(EMBER.read_bytes())
    assert read_model(path).n_layers == 6
    path.unlink()
    with pytest.raises(GgufError, match=r"model\.gguf"):
        read_model(path)
