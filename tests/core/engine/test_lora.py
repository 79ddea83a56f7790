"""LoRA adapters: what they change is changed by scale, and no text computed with others is taken up again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.engine.engine import Engine
from core.llama.context import LoraAdapters
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.values.engine_options import EngineOptions
from core.values.errors import BadRequest, LoadFailed
from core.values.messages import Ended, Started, Token
from core.values.request import Request
from tests.support.engines import open_engine
from tests.support.prompts import EMBER, EMBER_DRAFT, ENDLESS, FOX
from tools.model_factory.lora_factory import lora


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    silence_log()
    folder = tmp_path_factory.mktemp("lora")
    return [str(lora(folder / f"{seed}.gguf", seed)) for seed in (1, 2)]


@pytest.fixture(scope="module")
def engine(files: list[str]) -> Iterator[Engine]:
    with open_engine(n_slots=2, lora=((files[0], 1.0), (files[1], 0.0))) as opened:
        yield opened


def run(engine: Engine, *scales: tuple[float, ...]) -> list[tuple[str, int]]:
    """Answer the same prompt at once with each of the scales; return texts, and how much of the prompt was known."""
    for index, lora_scales in enumerate(scales):
        engine.submit(engine.prepare(Request(str(index), FOX, 24, sampling=ENDLESS, lora=lora_scales)))
    texts, known = [""] * len(scales), [0] * len(scales)
    while not engine.is_idle:
        for event in engine.step():
            if isinstance(event, Started):
                known[int(event.request_id)] = event.n_cached
            elif isinstance(event, (Token, Ended)):
                texts[int(event.request_id)] += event.text
    return list(zip(texts, known, strict=True))


def test_side_by_side_each_request_has_its_own_scales_and_no_text_of_others(engine: Engine, files: list[str]) -> None:
    with open_engine(n_slots=2) as plain:
        expected = run(plain, ())[0][0]
    found = run(engine, (), (0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0))
    texts = [text for text, _ in found]
    assert texts[1] == texts[4] == expected
    assert texts[0] == texts[3]
    assert len({texts[0], texts[1], texts[2]}) == 3
    # Only what was computed with the same scales just before is known.
    assert [bool(n_known) for _, n_known in run(engine, (0.0, 0.0), (0.0, 0.0))] == [True, True]
    assert run(engine, (0.0, 1.0))[0] == (texts[2], 0)


def test_drafts_change_no_text_of_an_adapted_model(engine: Engine, files: list[str]) -> None:
    expected = run(engine, ())[0][0]
    options = EngineOptions(str(EMBER), n_threads=1, flash_attention="on", draft_path=str(EMBER_DRAFT))
    drafting, _ = load_engine(options, cache_folder=None)
    drafting.use_adapters(LoraAdapters(drafting.model, [(files[0], 1.0)]))
    assert run(drafting, ())[0][0] == expected
    drafting.close()


def test_a_wrong_number_of_scales_and_a_file_that_is_no_adapter_are_refused(engine: Engine) -> None:
    with pytest.raises(BadRequest, match="2 LoRA adapters"):
        engine.prepare(Request("a", FOX, 1, lora=(1.0,)))
    with pytest.raises(LoadFailed, match="LoRA adapter"):
        LoraAdapters(engine.model, [(str(EMBER), 1.0)])
