"""Prompts with images: the text is llama.cpp's own, and what was seen once is not computed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.engine.engine import Engine
from core.values.engine_options import EngineOptions
from core.values.errors import BadRequest, LoadFailed, PromptTooLong
from core.values.messages import FailureKind, FinishReason
from core.values.request import Request
from tests.support.engines import Ledger, complete, load, open_engine, run, submit
from tests.support.images import MARK, picture, png_header, reference, with_images
from tests.support.prompts import EMBER, SURE, chat
from tools.model_factory.gguf_factory import EMBER_DRAFT, cached_file
from tools.model_factory.hybrid_factory import qwen35
from tools.model_factory.projector_factory import mrope_ember, projector
from tools.model_factory.recurrent_factory import N_EMBD, gemma3

_ONE = chat(f"Tell me a story about this: {MARK} Make it short.")
_TWO = chat(f"First {MARK} and then {MARK}. What changed?")
_TEXT = chat("Tell me a story about a fox.")
_N = 24


class Case(NamedTuple):
    """A model and a projector for it."""

    model: Path
    mmproj: Path


_CASES: dict[str, Callable[[], Case]] = {
    "rows that see each other": lambda: Case(EMBER, projector("gemma3")),
    "positions in two dimensions": lambda: Case(mrope_ember(), projector("qwen2vl_merger")),
    "tiles": lambda: Case(EMBER, projector("internvl")),
    "a recurrent state": lambda: Case(cached_file("seeing-qwen35.gguf", _hybrid), projector("qwen2vl_merger", N_EMBD)),
    "a sliding window": lambda: Case(cached_file("seeing-gemma3.gguf", gemma3), projector("gemma3", N_EMBD)),
}


def _hybrid(path: Path) -> Path:
    return qwen35(path, "random")


@pytest.fixture(params=_CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return _CASES[request.param]()


def _open(case: Case, **options: Any) -> AbstractContextManager[Engine]:
    fields = {"n_ctx": 1024, "mmproj": str(case.mmproj), "cache_ram": 64 << 20, "speculation": "off"}
    return open_engine(case.model, **(fields | options))


@pytest.fixture(scope="module")
def seeing(case: Case) -> Iterator[Engine]:
    with _open(case) as engine:
        yield engine


@pytest.mark.parametrize("text", [_ONE, _TWO])
def test_says_what_llama_cpp_says_of_the_same_images(seeing: Engine, case: Case, text: str) -> None:
    files = tuple(picture(seed) for seed in range(text.count(MARK)))
    said, ended, _ = complete(seeing, **with_images(text, *files), max_tokens=_N)
    assert said == reference(*case, text, files, _N)
    assert said
    assert ended.reason is not FinishReason.FAILED


def test_reads_an_image_once(seeing: Engine) -> None:
    fields = with_images(_ONE, picture(seed=11))
    first, _, _ = complete(seeing, **fields, max_tokens=_N)
    again, ended, _ = complete(seeing, **fields, max_tokens=_N)
    assert again == first
    assert ended.receipt.n_cached >= ended.receipt.n_prompt - 8  # where a recurrent state is kept


def test_knows_images_from_each_other(seeing: Engine) -> None:
    one, other = picture(seed=21), picture(seed=22)
    said = {}
    for order in ((one, other), (other, one), (one, one), (one, other)):
        text, ended, _ = complete(seeing, **with_images(_TWO, *order), max_tokens=_N)
        assert said.setdefault(order, text) == text
        n_cached, n_prompt = ended.receipt.n_cached, ended.receipt.n_prompt
    assert n_cached >= n_prompt - 8
    assert len(set(said.values())) > 1


def test_a_conversation_goes_on_from_where_it_was(seeing: Engine, case: Case) -> None:
    file = picture(seed=31)
    said, ended, _ = complete(seeing, **with_images(_ONE, file), max_tokens=_N)
    longer = f"{_ONE}{said}<|im_end|>\n{chat('And then?')}"
    more, later, _ = complete(seeing, **with_images(longer, file), max_tokens=_N)
    assert later.receipt.n_cached >= ended.receipt.n_prompt - 8
    assert more == reference(*case, longer, (file,), _N)


def test_comes_back_from_ram(case: Case) -> None:
    fields = with_images(_ONE, picture(seed=41, width=160, height=160))
    with _open(case, n_slots=1) as engine:
        first, _, _ = complete(engine, **fields, max_tokens=_N)
        for topic in ("a fox", "an owl"):
            complete(engine, chat(f"{topic} is not in any picture, is it? Tell me about {topic}."), max_tokens=2)
        again, ended, _ = complete(engine, **fields, max_tokens=_N)
    assert again == first
    assert ended.receipt.n_cached > ended.receipt.n_prompt // 2


def test_comes_back_from_disk(case: Case, tmp_path: Path) -> None:
    fields = with_images(_ONE, picture(seed=43))
    options = {"cache_folder": tmp_path, "cache_disk": 1 << 30}
    with _open(case, **options) as engine:
        first, _, _ = complete(engine, **fields, max_tokens=_N)
        while (seconds := engine.write_back()) is not None:
            time.sleep(seconds)
    with _open(case, **options) as engine:
        again, ended, _ = complete(engine, **fields, max_tokens=_N)
    assert again == first
    assert ended.receipt.n_cached > ended.receipt.n_prompt // 2


def test_drafts_for_texts_beside_images_change_nothing() -> None:
    fields = with_images(_ONE, picture(seed=44))
    with open_engine(n_ctx=1024, mmproj=str(projector("gemma3"))) as engine:
        alone = [complete(engine, **one, max_tokens=_N)[0] for one in (fields, {"prompt": SURE})]
    with open_engine(n_ctx=1024, mmproj=str(projector("gemma3")), draft_path=str(EMBER_DRAFT), draft_depth=4) as engine:
        for name in ("one", "two"):
            submit(engine, f"image {name}", **fields, max_tokens=_N)
            submit(engine, f"text {name}", SURE, max_tokens=_N)
        ledger = run(engine)
    for name in ("one", "two"):
        assert [ledger.text[f"image {name}"], ledger.text[f"text {name}"]] == alone
        assert ledger.ended[f"image {name}"].receipt.n_drafted == 0
    assert ledger.ended["text one"].receipt.n_drafted


def test_a_chat_goes_on_while_images_are_read(seeing: Engine) -> None:
    ledger = Ledger()
    submit(seeing, "text", _TEXT, max_tokens=200)
    while "text" not in ledger.tokens:
        ledger.add(seeing.step())
    submit(seeing, "images", **with_images(_TWO, picture(seed=51), picture(seed=52)), max_tokens=4)
    while "images" not in ledger.started:
        ledger.add(seeing.step())
    before = ledger.n_tokens["text"]
    while "images" not in ledger.tokens:
        ledger.add(seeing.step())
    assert ledger.n_tokens["text"] > before
    seeing.cancel("text")
    run(seeing, ledger)
    assert ledger.ended["images"].reason is FinishReason.LENGTH


def test_can_be_cancelled_while_an_image_is_encoded(seeing: Engine) -> None:
    ledger = Ledger()
    submit(seeing, "images", **with_images(_ONE, picture(seed=61, width=400, height=400)))
    while "images" not in ledger.started:
        ledger.add(seeing.step())
    seeing.cancel("images")
    ledger.add(seeing.step())
    assert ledger.ended["images"].reason is FinishReason.CANCELLED
    assert seeing.is_idle
    assert complete(seeing, _TEXT, max_tokens=2)[1].reason is FinishReason.LENGTH


def test_a_damaged_image_ends_its_request_alone(seeing: Engine) -> None:
    whole = picture(seed=71, width=200, height=200)
    submit(seeing, "broken", **with_images(_ONE, whole[: len(whole) // 2]), max_tokens=4)
    submit(seeing, "whole", **with_images(_ONE, whole), max_tokens=4)
    ledger = run(seeing)
    failure = ledger.ended["broken"].failure
    assert failure is not None
    assert failure.kind is FailureKind.BAD_REQUEST
    assert "damaged" in failure.message
    assert ledger.ended["whole"].reason is FinishReason.LENGTH


def test_images_count_in_the_context(seeing: Engine) -> None:
    files = [picture(seed) for seed in range(64)]
    with pytest.raises(PromptTooLong) as raised:
        seeing.prepare(Request("long", **with_images(chat(MARK * 64), *files)))
    assert raised.value.n_prompt > 1024


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not an image"),
        (b"GIF89a", "not an image"),
        (b"%PDF-1.4 not an image", "not an image"),
        (picture(width=1200, height=10), "at most 100 times"),
        (png_header(60_000, 60_000), "50 million"),
        (png_header(0, 5), "not an image"),
    ],
)
def test_refuses_what_is_no_image_before_it_is_decoded(seeing: Engine, data: bytes, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        seeing.prepare(Request("bad", **with_images(_ONE, data)))


def test_a_model_without_projector_says_what_helps() -> None:
    with open_engine() as engine, pytest.raises(BadRequest, match="mmproj"):
        engine.prepare(Request("blind", **with_images(_ONE, picture())))


def test_a_projector_of_another_model_is_refused_or_left_out() -> None:
    with pytest.raises(LoadFailed, match="not a projector"):
        load(EngineOptions(str(EMBER), n_threads=1, mmproj=str(EMBER)))
    engine, loaded = load(EngineOptions(str(EMBER), n_threads=1, mmproj=str(EMBER), must_see=False))
    engine.close()
    assert loaded.mmproj == ""
    assert any("not a projector" in notice for notice in loaded.notices)
