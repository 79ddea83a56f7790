"""Estimates stand beside llama.cpp's own numbers; limits of control groups are honoured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from app.server.meters import Meters
from models.estimate.fit import memory
from models.estimate.fit.memory import EngineShape, cgroup_free, estimate, free_memory, total_memory
from models.facts.model_facts import read_model
from tests.support.broken_gguf import giant
from tests.support.llama_probe import MIB, Question, ask
from tools.model_factory import head_factory, hybrid_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached, cached_file

# llama.cpp's log rounds to 0.01 MiB; its allocator pads each tensor.
LOG_ROUNDING = 0.02 * MIB
COMPUTE_TOLERANCE = 0.15


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        (None, {"n_ctx": 1000}),
        (None, {"n_ctx": 8192}),
        (None, {"n_ctx": 8192, "kv_type": "q8_0"}),
        (None, {"n_ctx": 4096, "n_ubatch": 128, "n_slots": 8}),
        (Recipe(n_layers=60), {"n_ctx": 4096, "n_slots": 4}),
        (Recipe(n_layers=12, tensor_type="F16"), {"n_ctx": 2048}),
        (Recipe(n_experts=8, n_experts_used=2), {"n_ctx": 2048}),
        (Recipe(source=EMBER_DRAFT), {"n_ctx": 8192}),
        (Recipe(tensor_type="Q4_0"), {"n_ctx": 8192}),
        (Recipe(n_vocab=20_000), {"n_ctx": 1024, "n_outputs": 256}),
    ],
    ids=lambda value: value.name if isinstance(value, Recipe) else None,
)
def test_the_estimate_is_what_llama_cpp_allocates(recipe, settings):
    path = cached(recipe) if recipe else EMBER
    answer = ask(Question(str(path), **settings))
    assert answer.loaded
    shape = EngineShape(**{key: value for key, value in settings.items() if key not in ("n_ctx", "kv_type")})
    facts = read_model(path)
    need = estimate(facts, settings["n_ctx"], shape, kv_type=settings.get("kv_type", "f16"))
    assert need.kv_cache == pytest.approx(answer.buffer_bytes("KV"), abs=LOG_ROUNDING)
    # The output buffer grows to this when as many rows are asked for.
    output = facts.n_vocab * 4 * settings.get("n_outputs", settings.get("n_slots", 1))
    assert need.compute == pytest.approx(answer.buffer_bytes("compute") + output, rel=COMPUTE_TOLERANCE)
    # Some kernels, as AMX's, copy weights into a buffer of their own. The system then takes back the file's pages.
    mapped, all_buffers = answer.buffer_bytes("Mapped model"), answer.buffer_bytes("model")
    assert mapped - LOG_ROUNDING <= need.weights <= all_buffers + LOG_ROUNDING


@pytest.mark.parametrize("make", [hybrid_factory.qwen35, hybrid_factory.bailingmoe3, head_factory.mtp_counter])
def test_what_heads_draft_with_is_counted_once(make):
    """Their cells are another cache's, but for those that llama.cpp sets aside in vain; states are kept per slot."""
    path = cached_file(f"estimated-{make.__name__}.gguf", make)
    answer = ask(Question(str(path), n_ctx=8192, n_slots=4))
    facts = read_model(path)
    need = EngineShape(n_slots=4, uses_heads=True).need(facts, 8192, "f16")
    state = answer.buffer_bytes("RS") if facts.state_elements else 0
    assert need.kv_cache == pytest.approx(answer.buffer_bytes("KV") + state, abs=LOG_ROUNDING)
    assert need.draft == facts.mtp_kv_bytes_per_token() * 8192 > 0


def test_scores_without_flash_attention_and_a_state_per_slot_are_added():
    facts = read_model(EMBER)
    with_flash = estimate(facts, 8192).compute
    assert estimate(facts, 8192, EngineShape(flash_attention=False)).compute > with_flash + 6 * 512 * 8192 * 4
    facts = replace(read_model(EMBER), state_elements=1_000)
    one, four = (estimate(facts, 256, EngineShape(n_slots)).kv_cache for n_slots in (1, 4))
    assert four - one == 3 * 1_000 * 4


def test_free_memory_is_below_all_memory_and_a_terabyte(tmp_path):
    assert 0 < free_memory() <= psutil.virtual_memory().total
    need = estimate(read_model(giant(tmp_path / "giant.gguf")), 4096)
    assert need.total > max(1e12, free_memory())


def put(folder: Path, **files: str | int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


class TestControlGroups:
    """Memory limits of containers and services."""

    def test_version_2_takes_the_limits_of_all_groups_above(self, tmp_path):
        put(tmp_path, membership="0::/outer/inner")
        mount = tmp_path / "mount"
        put(
            mount / "outer",
            memory__max=1_000,
            memory__current=700,
            memory__stat="anon 500\ninactive_file 80\nactive_file 20",
        )
        put(mount / "outer" / "inner", memory__max="max", memory__current=100)
        assert cgroup_free(tmp_path / "membership", mount) == [400]

    def test_version_1_has_a_folder_of_its_own(self, tmp_path):
        put(tmp_path, membership="9:cpu:/a\n4:memory:/job\n0::/")
        folder = tmp_path / "mount" / "memory" / "job"
        put(folder, memory__limit_in_bytes=900, memory__usage_in_bytes=500, memory__stat="total_inactive_file 50")
        assert cgroup_free(tmp_path / "membership", tmp_path / "mount") == [450]

    def test_inside_a_container_the_root_holds_the_limit(self, tmp_path):
        put(tmp_path, membership="0::/../../host/path")
        put(tmp_path / "mount", memory__max=1_000, memory__current=1)
        assert cgroup_free(tmp_path / "membership", tmp_path / "mount") == [999]

    def test_no_groups_no_limit(self, tmp_path):
        assert cgroup_free(tmp_path / "nothing", tmp_path) == []
        put(tmp_path, membership="nonsense\n\n::")
        assert cgroup_free(tmp_path / "membership", tmp_path) == []

    def test_the_lowest_limit_counts(self, monkeypatch):
        monkeypatch.setattr("models.estimate.fit.memory.cgroup_free", lambda *_: [5_000, 7_000])
        assert free_memory() == 5_000
        monkeypatch.setattr("models.estimate.fit.memory.cgroup_free", lambda *_: [-1])
        assert free_memory() == 0

    def test_a_machine_has_no_more_memory_than_its_group_may_take(self, tmp_path, monkeypatch):
        whole = total_memory()
        put(tmp_path, membership="4:memory:/job\n0::/outer")
        monkeypatch.setattr(memory, "CGROUP_MEMBERSHIP", tmp_path / "membership")
        monkeypatch.setattr(memory, "CGROUP_MOUNT", tmp_path / "mount")
        put(tmp_path / "mount" / "outer", memory__max="max")
        put(tmp_path / "mount" / "memory" / "job", memory__limit_in_bytes=9223372036854771712)
        assert total_memory() == whole
        put(tmp_path / "mount" / "outer", memory__max=1_000_000)
        assert total_memory() == 1_000_000
        assert Meters().read([]).total == 1_000_000
