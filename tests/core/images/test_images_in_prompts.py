"""Prompts with images: the text is llama.cpp's own, and what was seen once is not computed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.values.engine_options import EngineOptions
from core.values.errors import BadRequest, LoadFailed, PromptTooLong
from core.values.messages import FailureKind, FinishReason
from core.values.request import Request
from tests.support.engines import EMBER, Ledger, chat, complete, load, open_engine, run, submit
from tests.support.images import MARK, picture, png_header, reference, with_images
from tools.model_factory.projector_factory import ProjectorKind, mrope_ember, projector

_ONE = chat(f"Tell me a story about this: {MARK} Make it short.")
_TWO = chat(f"First {MARK} and then {MARK}. What changed?")
_TEXT = chat("Tell me a story about a fox.")
_N = 24


def _model(kind: ProjectorKind) -> Path:
    return mrope_ember() if kind == "qwen2vl_merger" else EMBER


@pytest.fixture(params=["gemma3", "qwen2vl_merger", "internvl"], scope="module")
def kind(request: pytest.FixtureRequest) -> ProjectorKind:
    return request.param


@pytest.fixture(scope="module")
def seeing(kind: ProjectorKind) -> Iterator[Engine]:
    with open_engine(_model(kind), n_ctx=1024, mmproj=str(projector(kind)), cache_ram=64 << 20) as engine:
        yield engine


@pytest.mark.parametrize("text", [_ONE, _TWO])
def test_says_what_llama_cpp_says_of_the_same_images(seeing: Engine, kind: ProjectorKind, text: str) -> None:
    files = tuple(picture(seed) for seed in range(text.count(MARK)))
    said, ended, _ = complete(seeing, **with_images(text, *files), max_tokens=_N)
    assert said == reference(_model(kind), projector(kind), text, files, _N)
    assert said
    assert ended.reason is not FinishReason.FAILED


def test_reads_an_image_once(seeing: Engine) -> None:
    fields = with_images(_ONE, picture(seed=11))
    first, _, _ = complete(seeing, **fields, max_tokens=_N)
    again, ended, _ = complete(seeing, **fields, max_tokens=_N)
    assert again == first
    assert ended.receipt.n_cached == ended.receipt.n_prompt - 1


def test_knows_images_from_each_other(seeing: Engine) -> None:
    one, other = picture(seed=21), picture(seed=22)
    said = {}
    for order in ((one, other), (other, one), (one, one), (one, other)):
        text, ended, _ = complete(seeing, **with_images(_TWO, *order), max_tokens=_N)
        assert said.setdefault(order, text) == text
        n_cached, n_prompt = ended.receipt.n_cached, ended.receipt.n_prompt
    assert n_cached == n_prompt - 1
    assert len(set(said.values())) > 1


def test_a_conversation_goes_on_from_where_it_was(seeing: Engine, kind: ProjectorKind) -> None:
    file = picture(seed=31)
    said, ended, _ = complete(seeing, **with_images(_ONE, file), max_tokens=_N)
    longer = f"{_ONE}{said}<|im_end|>\n{chat('And then?')}"
    more, later, _ = complete(seeing, **with_images(longer, file), max_tokens=_N)
    assert later.receipt.n_cached >= ended.receipt.n_prompt
    assert more == reference(_model(kind), projector(kind), longer, (file,), _N)


def test_comes_back_from_ram(kind: ProjectorKind) -> None:
    fields = with_images(_ONE, picture(seed=41, width=160, height=160))
    with open_engine(_model(kind), n_ctx=1024, n_slots=1, mmproj=str(projector(kind)), cache_ram=64 << 20) as engine:
        first, _, _ = complete(engine, **fields, max_tokens=_N)
        for topic in ("a fox", "an owl"):
            complete(engine, chat(f"{topic} is not in any picture, is it? Tell me about {topic}."), max_tokens=2)
        again, ended, _ = complete(engine, **fields, max_tokens=_N)
    assert again == first
    assert ended.receipt.n_cached > ended.receipt.n_prompt // 2


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
