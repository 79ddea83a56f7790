"""Loading: what cannot work is refused with a sentence before llama.cpp sees it; what works gives the same text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.cost.calibration import calibrate, steps_key
from core.cost.cost_model import Calibration
from core.llama.model import Vocab
from core.loading.load_drafts import open_draft_engine
from core.loading.load_engine import load_engine
from core.loading.memory_fit import context_size
from core.machine.host import core_count
from core.machine.known_machine import Measurements, measurement_key
from core.speculation.proposers.draft_model import DraftModelProposer
from core.values.engine_options import EngineOptions, KvType
from core.values.errors import BadOption, DraftRefused, LoadFailed, ModelDoesNotFit
from core.values.messages import EnginePhase, EngineState
from core.values.request import Request
from models.estimate.fit.memory import USABLE_SHARE
from models.facts.model_facts import read_model
from tests.support.broken_gguf import BROKEN, UNUSABLE, Broken, Unusable, giant
from tests.support.engines import complete, load, need_of, open_engine
from tests.support.near_ties import assert_same_up_to_a_near_tie, greedy
from tests.support.pair_files import decoder_for_vectors
from tests.support.prompts import EMBER, EMBER_DRAFT, chat
from tools.model_factory import gguf_factory
from tools.model_factory.embedder_factory import bert

pytestmark = pytest.mark.usefixtures("forked_children")

QUESTION = chat("Who are you?")


@pytest.mark.parametrize("made", [BROKEN[0], UNUSABLE[0]], ids=lambda made: made.name)
def test_a_file_that_cannot_be_used_is_refused_with_its_reason(made: Broken | Unusable, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    made.write(path)
    with pytest.raises(LoadFailed) as caught:
        load_engine(EngineOptions(str(path)), cache_folder=None)
    assert made.says in caught.value.message


def test_a_model_too_large_for_memory_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(ModelDoesNotFit, match=r"needs [\d.,]+ GB of memory, and [\d.]+ [GM]B is free") as caught:
        load_engine(EngineOptions(str(giant(tmp_path / "giant.gguf"))), cache_folder=None)
    facts = caught.value.args[0].facts
    assert facts["needed"] > facts["free"] > 0


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(BadOption, match="no device called 'Warp9'"):
        load_engine(EngineOptions(str(EMBER), devices=("Warp9",)), cache_folder=None)


def test_progress_goes_from_0_to_1_and_the_facts_are_right(tmp_path: Path) -> None:
    seen: list[float] = []
    engine, model = load_engine(EngineOptions(str(EMBER)), cache_folder=tmp_path, progress=seen.append)
    engine.close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert (model.n_ctx, model.n_cells, model.n_ctx_train) == (1024, 4096, 1024)
    assert (model.bos, model.eos) == ("<|endoftext|>", "<|im_end|>")
    assert model.fim is not None
    assert model.fim[:3] == ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
    assert 1 <= model.n_threads <= core_count()
    assert EngineState(EnginePhase.READY, model).model == model


@pytest.mark.parametrize("kv_type", ["f32", "f16", "bf16", "q8_0", "q4_0"])
def test_every_kv_type_runs(kv_type: KvType) -> None:
    with open_engine(kv_type=kv_type, n_ctx=256) as engine:
        text, _, _ = complete(engine, QUESTION, max_tokens=20)
    assert "Ember" in text


@pytest.mark.parametrize("options", [{"mmap": False}, {"flash_attention": "on"}, {"flash_attention": "off"}], ids=str)
def test_other_ways_to_load_give_the_same_text(options: dict[str, object]) -> None:
    with open_engine(n_ctx=256) as engine:
        expected, _ = greedy(engine, QUESTION, max_tokens=30)
    with open_engine(n_ctx=256, **options) as engine:
        found, _ = greedy(engine, QUESTION, max_tokens=30)
    assert_same_up_to_a_near_tie(found, expected)


def test_a_begin_token_written_by_the_template_is_not_doubled(tmp_path: Path) -> None:
    path = tmp_path / "with-begin.gguf"
    content = bytearray(EMBER.read_bytes())
    key = b"tokenizer.ggml.add_bos_token"
    content[content.index(key) + len(key) + 4] = 1  # a type of four bytes stands between key and value
    path.write_bytes(content)
    with open_engine(path, n_ctx=256) as engine:
        plain = engine.tokenize(Request("1", "Hello")).tolist()
        assert plain[0] == 0
        assert engine.tokenize(Request("2", "<|endoftext|>Hello")).tolist() == plain


NONSENSE = (
    None,
    [],
    {},
    {"seconds": {}, "kv_seconds": 0},
    {"seconds": {"x": 1}, "kv_seconds": 0},
    {"seconds": {"1": float("nan")}, "kv_seconds": 0},
    {"seconds": {"1": 1e-3}, "kv_seconds": float("inf")},
    {"seconds": [1, 2], "kv_seconds": 0},
)
NO_CHOICES = (None, {"decode": [], "few": 1, "many": 1}, {"decode": 1, "few": 1, "many": 99})


@pytest.mark.slow
def test_what_was_measured_is_used_again_and_nonsense_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.machine.known_machine.others_are_busy", lambda others: False)
    calibrations: list[float] = []

    def counted(*arguments: Any, **options: Any) -> Calibration:
        calibrations.append(1)
        return calibrate(*arguments, **options)

    monkeypatch.setattr("core.cost.calibration.calibrate", counted)
    path = tmp_path / "measured.json"

    def load() -> int:
        """Return how often the model was calibrated."""
        calibrations.clear()
        engine, _ = load_engine(
            EngineOptions(str(EMBER_DRAFT), n_slots=2, n_ctx=256, n_threads=2), cache_folder=tmp_path
        )
        assert 0 < engine.cost.time(1, 0) < 10
        engine.close()
        return len(calibrations)

    assert (load(), load()) == (1, 0)
    kept = json.loads(path.read_text())
    for nonsense in NONSENSE:
        path.write_text(json.dumps(dict.fromkeys(kept, nonsense)))
        assert load() == 1, nonsense
        assert json.loads(path.read_text()).keys() == kept.keys()
        assert nonsense not in json.loads(path.read_text()).values()
    assert load() == 0
    with monkeypatch.context() as other:
        other.setattr("core.machine.known_machine.cpu_name", lambda: "the processor of another machine")
        assert load() == 1
    assert load() == 0
    monkeypatch.setattr("core.cost.calibration.features", lambda: ("CPU", "compiled for another processor"))
    assert load() == 1


def test_what_was_measured_of_a_draft_holds_for_the_options_it_was_measured_with() -> None:
    measured = Measurements(None)
    options = EngineOptions(str(EMBER_DRAFT), n_ctx=256, n_slots=1, n_threads=1, draft_path=str(EMBER_DRAFT))
    counts = []
    for flash_attention in ("on", "off", "on"):
        engine, _ = load(replace(options, flash_attention=flash_attention), measured=measured)
        engine.close()
        counts.append(len(measured.entries))
    assert counts == [2, 4, 4]


def test_steps_on_a_gpu_are_measured_anew_with_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(n_gpu_layers: int, *gpus: str) -> str:
        found = [SimpleNamespace(description=gpu, is_gpu=True) for gpu in gpus]
        monkeypatch.setattr("core.cost.calibration.list_devices", lambda: found)
        return steps_key("m.gguf", model, n_gpu_layers)

    model: Any = SimpleNamespace(n_bytes=100)
    assert key(8, "small") == key(8, "small") != key(8, "large")
    assert key(0, "small") == key(0, "large"), "where none computes, none counts"


@pytest.mark.parametrize("nonsense", NO_CHOICES)
def test_threads_that_cannot_be_are_chosen_anew(
    nonsense: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.loading.load_engine.Measurements.recall", lambda _self, _key: nonsense)
    engine, loaded = load_engine(EngineOptions(str(EMBER_DRAFT), n_slots=1, n_ctx=128), cache_folder=tmp_path)
    engine.close()
    assert 1 <= loaded.n_threads <= core_count()


@pytest.mark.parametrize(("seconds", "measured"), [(0.01, [1, 6, 64]), (0.06, [1, 6]), (0.5, [1])])
def test_a_large_model_is_not_kept_from_loading_by_measuring_wide_steps(
    seconds: float, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``seconds`` is the time of a step of one row."""
    widths: list[int] = []

    def measure(step: partial[None], counts: tuple[int, ...]) -> dict[int, float]:
        widths.append(step.args[1])
        return dict.fromkeys(counts, seconds * (1 if widths[-1] == 1 else 2))

    monkeypatch.setattr("core.loading.load_engine.step_times", measure)
    monkeypatch.setattr("core.machine.known_machine.others_are_busy", lambda others: False)  # other tests may be
    engine, loaded = load_engine(EngineOptions(str(EMBER_DRAFT), n_slots=1, n_ctx=128), cache_folder=None)
    engine.close()
    assert (widths, loaded.n_threads) == (measured, 1), "the fewest of equally fast counts"


def truncated(path: Path) -> None:
    path.write_bytes(EMBER_DRAFT.read_bytes()[:200_000])


def larger(path: Path) -> None:
    shutil.copy(gguf_factory.cached(gguf_factory.Recipe(n_layers=16)), path)


def absent(path: Path) -> None:
    path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (truncated, "is incomplete"),
        (larger, "is larger than"),
        (absent, "There is no file"),
        (bert, "turns texts into vectors"),
        (decoder_for_vectors, "turns texts into vectors"),
    ],
)
def test_a_draft_that_cannot_be_is_refused_and_costs_nothing_once_it_has_worked(
    spoil: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.gguf"
    spoil(draft)
    options = EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1, draft_path=str(draft))
    with pytest.raises(DraftRefused, match=says):
        load(options)
    engine, loaded = load(replace(options, must_draft=False))
    assert complete(engine, QUESTION, max_tokens=3)[1].failure is None
    engine.close()
    (notice,) = loaded.notices
    assert says in notice


def test_a_draft_that_is_deleted_while_the_model_is_loaded_does_not_cost_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = tmp_path / "draft.gguf"
    shutil.copy(EMBER_DRAFT, draft)
    made = DraftModelProposer.__init__

    def make(*arguments: Any) -> None:
        made(*arguments)
        draft.unlink()

    monkeypatch.setattr(DraftModelProposer, "__init__", make)
    engine, loaded = load(EngineOptions(str(EMBER), n_slots=1, n_ctx=128, n_threads=1, draft_path=str(draft)))
    assert complete(engine, QUESTION, max_tokens=3)[1].failure is None
    engine.close()
    assert (loaded.draft_path, draft.exists()) == (str(draft), False)


def test_a_draft_that_is_deleted_while_it_drafts_goes_on(tmp_path: Path) -> None:
    draft = tmp_path / "draft.gguf"
    shutil.copy(EMBER_DRAFT, draft)
    with open_engine(draft_path=str(draft), draft_depth=3) as engine:
        expected, _, _ = complete(engine, QUESTION, max_tokens=20)
        draft.unlink()
        engine.forget_texts()
        found, ended, _ = complete(engine, QUESTION, max_tokens=20)
        assert (found, ended.failure) == (expected, None)
        assert ended.receipt.n_drafted


def test_experts_that_stay_in_host_memory_give_the_same_text() -> None:
    path = str(gguf_factory.cached(gguf_factory.Recipe(n_experts=4, n_experts_used=2)))
    runs = []
    for n_layers in (0, 3, 99):
        engine, model = load(EngineOptions(path, n_threads=1, n_cpu_moe=n_layers))
        try:
            assert model.n_cpu_moe == min(n_layers, 6)
            runs.append(greedy(engine, max_tokens=24)[0])
        finally:
            engine.close()
    for run in runs[1:]:
        assert_same_up_to_a_near_tie(run, runs[0])


@pytest.mark.parametrize("n_layers", [-1, 513])
def test_experts_of_layers_that_cannot_be_are_refused(n_layers: int) -> None:
    with pytest.raises(BadOption, match="between 0 and 512"):
        EngineOptions(str(EMBER), n_cpu_moe=n_layers)


def room_between(path: Path, options: EngineOptions, one: KvType, other: KvType) -> int:
    """Bytes of memory in which there is room for a cache of one of two types."""
    facts = read_model(path)
    size = context_size(facts, options)
    return int(
        sum(need_of(facts, replace(options, kv_type=each), size.n_cells).total for each in (one, other))
        / 2
        / USABLE_SHARE
    )


@pytest.mark.parametrize(
    "path", [EMBER, gguf_factory.cached(gguf_factory.Recipe(n_experts=4, n_experts_used=2))], ids=["dense", "experts"]
)
def test_a_cache_that_has_no_room_in_f16_is_loaded_in_q8_0_and_told(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = EngineOptions(str(path), n_ctx=16_384, n_slots=1, n_threads=1, cache_disk=1 << 20)
    free = room_between(path, options, "f16", "q8_0")
    monkeypatch.setattr("core.loading.memory_fit.free_memory", lambda: free)
    keys: list[tuple[object, ...]] = []

    def noted(*parts: object) -> str:
        keys.append(parts)
        return measurement_key(*parts)

    monkeypatch.setattr("core.cost.calibration.measurement_key", noted)
    monkeypatch.setattr("core.loading.contexts.model_key", lambda *parts: noted(*parts).encode())
    engine, model = load_engine(options, cache_folder=tmp_path)
    text, _, _ = complete(engine, QUESTION, max_tokens=20)
    per_token = engine.meter.reads.cell
    engine.close()
    assert "Ember" in text
    assert (model.kv_type, model.n_ctx, model.n_cpu_moe) == ("q8_0", 16_384, 0)
    assert model.notices == (
        "Because this fits the free memory and is fastest, it is loaded with a KV cache of type q8_0 instead of f16.",
    )
    assert per_token == read_model(path).kv_bytes_per_token("q8_0")
    assert sum("q8_0" in parts for parts in keys) == 2
    with pytest.raises(ModelDoesNotFit, match=r"without asking for a KV cache of type f16: q8_0 cache for 16,384"):
        load_engine(replace(options, kv_type="f16"), cache_folder=None)


def test_a_draft_without_room_is_left_out_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    options = EngineOptions(str(EMBER), n_ctx=512, draft_path=str(EMBER_DRAFT), n_slots=1)
    facts = read_model(EMBER)
    alone = need_of(facts, replace(options, draft_path=None), context_size(facts, options).n_cells).total
    both = need_of(facts, options, context_size(facts, options).n_cells).total
    monkeypatch.setattr("core.loading.memory_fit.free_memory", lambda: int((alone + both) / 2 / USABLE_SHARE))
    with pytest.raises(ModelDoesNotFit, match="what drafts"):
        load(options)
    engine, model = load(replace(options, must_draft=False))
    engine.close()
    assert "does not draft: with it there is too little memory" in model.notices[0]


def test_a_vocabulary_is_read_once_however_many_parts_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one takes a quarter of a second, and the draft that can also answer is asked for its own."""
    read, made = [], Vocab.__init__
    monkeypatch.setattr(Vocab, "__init__", lambda vocab, model: (read.append(model), made(vocab, model))[1])
    options = EngineOptions(str(EMBER), n_ctx=256, n_threads=1, draft_path=str(EMBER_DRAFT), calibrates=False)
    engine, loaded = load(options)
    small = open_draft_engine(engine, loaded)
    assert read == [engine.model, small.model]
    small.close()
    engine.close()
