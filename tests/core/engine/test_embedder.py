"""Texts become vectors: the same as by llama.cpp's plain calls, in any company, between the steps of a chat."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from core.engine.embedder import Embedder
from core.engine.engines import Engines
from core.llama.context import Batch, EmbeddingContext
from core.llama.library import L, silence_log
from core.llama.model import Model
from core.loading.load_engine import embedder_beside, load_embedder
from core.values.engine_options import EngineOptions
from core.values.errors import BadRequest, InputTooLong, LoadFailed
from core.values.messages import Ended, FinishReason, RequestEvent, Token
from core.values.request import Embedded, EmbedRequest, Lane, Request, SamplingParams, SlotRequest
from tests.support.engines import load, open_engine
from tests.support.prompts import EMBER, EMBER_DRAFT, words
from tools.model_factory import recurrent_factory
from tools.model_factory.embedder_factory import bert
from tools.model_factory.gguf_factory import cached_file
from tools.model_factory.lora_factory import lora

TEXTS = ("The fox ran into the wood.", "A boat on a lake", "one", "The fox ran into the dark wood and " * 6)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    silence_log()
    folder = tmp_path_factory.mktemp("embedders")
    return {kind: bert(folder / f"{kind}.gguf", kind) for kind in ("mean", "cls", "none", "rank")}


def opened(path: Path, **options: object) -> Embedder:
    return load_embedder(EngineOptions(str(path), n_threads=1, **options))[0]


@pytest.fixture
def embedder(files: dict[str, Path]) -> Iterator[Embedder]:
    made = opened(files["mean"])
    yield made
    made.close()


def run(embedder: Embedder, *requests: EmbedRequest) -> dict[str, RequestEvent]:
    """Return the answer to each request, or its end where it has none."""
    for request in requests:
        embedder.submit(embedder.prepare(request))
    answers: dict[str, RequestEvent] = {}
    while not embedder.is_idle:
        for event in embedder.step():
            assert not isinstance(answers.get(event.request_id), Ended)
            answers.setdefault(event.request_id, event)
    return answers


def arrays(answer: RequestEvent) -> list[np.ndarray]:
    assert isinstance(answer, Embedded), answer
    return [np.array([np.frombuffer(row, np.float32) for row in rows]) for rows in answer.vectors]


@pytest.mark.parametrize(("n_gpu_layers", "expected"), [(0, 1), (99, 2)])
def test_engines_that_work_at_once_divide_the_cores_but_for_those_on_a_gpu(
    n_gpu_layers: int, expected: int, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    monkeypatch.setattr(EmbeddingContext, "set_threads", lambda context, count: used.append(count))
    made = load_embedder(EngineOptions(str(files["mean"]), n_threads=2, n_gpu_layers=n_gpu_layers))[0]
    made.share_cores(1_000)
    arrays(run(made, EmbedRequest("a", TEXTS[:1]))["a"])
    made.close()
    assert used == [expected]


def test_a_model_for_vectors_uses_its_adapters(files: dict[str, Path], tmp_path: Path) -> None:
    adapter = str(lora(tmp_path / "adapter.gguf", source=files["mean"]))
    found = []
    for adapters in ((), ((adapter, 0.0),), ((adapter, 1.0),)):
        made = opened(files["mean"], lora=adapters)
        found.append(arrays(run(made, EmbedRequest("a", TEXTS[:1]))["a"])[0])
        made.close()
    assert np.array_equal(found[0], found[1])
    assert np.abs(found[2] - found[0]).max() > 0.01
    with pytest.raises(LoadFailed, match="made for this model"):
        opened(files["mean"], lora=((str(files["cls"]), 1.0),))


def plain(path: Path, tokens: np.ndarray, pooling: int) -> np.ndarray:
    """What llama.cpp's own calls give for one text alone."""
    model = Model(str(path))
    params = L.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 1024
    params.embeddings, params.pooling_type, params.n_threads = True, pooling, 1
    context = L.llama_init_from_model(model.c, params)
    batch = Batch(len(tokens))
    batch.add_run(tokens, 0, 0, n_wanted=0)
    batch.want_all()
    assert L.llama_decode(context, batch.c) == 0
    width, n_rows = (model.n_scores if pooling == 4 else model.n_embd_out), 1 if pooling else len(tokens)
    address = L.llama_get_embeddings_seq(context, 0) if pooling else L.llama_get_embeddings(context)
    data = ctypes.string_at(ctypes.cast(address, ctypes.c_void_p), 4 * width * n_rows)
    L.llama_free(context)
    model.close()
    return np.frombuffer(data, np.float32).reshape(n_rows, width)


@pytest.mark.parametrize(("kind", "number"), [("mean", 1), ("cls", 2), ("none", 0)])
def test_vectors_are_those_of_llama_cpp_in_any_company(files: dict[str, Path], kind: str, number: int) -> None:
    embedder = opened(files[kind])
    found = arrays(run(embedder, EmbedRequest("a", TEXTS, norm=-1))["a"])
    for text, vectors in zip(TEXTS, found, strict=True):
        expected = plain(files[kind], embedder.vocab.tokenize(text), number)
        np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-5)
    embedder.close()


def test_scores_are_those_of_the_head_for_query_and_document(files: dict[str, Path]) -> None:
    embedder = opened(files["rank"])
    request = EmbedRequest("a", TEXTS[:2], query="Where is the fox?")
    pairs, found = embedder.prepare(request).tokens, arrays(run(embedder, request)["a"])
    assert b"".join(map(embedder.vocab.bytes_of, pairs[0].tolist())).endswith(b"Where is the fox?" + TEXTS[0].encode())
    for tokens, score in zip(pairs, found, strict=True):
        np.testing.assert_allclose(score, plain(files["rank"], tokens, 4)[:, :1], rtol=1e-4)
    with pytest.raises(BadRequest, match="rerank"):
        embedder.prepare(EmbedRequest("b", ("text",)))
    embedder.close()


@pytest.mark.parametrize(("norm", "order"), [(2, 2), (1, 1), (3, 3)])
def test_vectors_are_cut_and_then_have_length_one(embedder: Embedder, norm: int, order: int) -> None:
    raw = arrays(run(embedder, EmbedRequest("a", TEXTS[:1], norm=-1))["a"])[0][0]
    cut = arrays(run(embedder, EmbedRequest("a", TEXTS[:1], dimensions=16, norm=norm))["a"])[0][0]
    np.testing.assert_allclose(cut, raw[:16] / np.linalg.norm(raw[:16], order), rtol=1e-5)


def test_the_largest_value_can_become_that_of_a_short_integer(embedder: Embedder) -> None:
    vector = arrays(run(embedder, EmbedRequest("a", TEXTS[:1], norm=0))["a"])[0][0]
    assert abs(vector).max() == pytest.approx(32_760)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"inputs": ((1, -1),)}, "no token"),
        ({"inputs": ("a",), "dimensions": 65}, "between 1 and 64"),
        ({"inputs": ("a",), "query": "q"}, "reranker"),
    ],
)
def test_what_cannot_be_done_is_said(embedder: Embedder, fields: dict, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        embedder.prepare(EmbedRequest("a", **fields))


def test_an_input_that_is_too_long_is_named_with_both_figures(embedder: Embedder) -> None:
    with pytest.raises(InputTooLong, match=r"Input 1 has 300 tokens, and this model takes 256"):
        embedder.prepare(EmbedRequest("a", ("short", (5,) * 300)))
    assert len(arrays(run(embedder, EmbedRequest("a", ((5,) * 256,)))["a"])) == 1


def test_texts_that_were_cancelled_half_read_leave_nothing_behind() -> None:
    embedder = opened(EMBER, pooling="last")
    alone = arrays(run(embedder, EmbedRequest("alone", TEXTS))["alone"])
    embedder.submit(embedder.prepare(EmbedRequest("gone", (TEXTS[-1] * 4,))))
    embedder.step(longest=1e-9)
    embedder.cancel("gone")
    after = arrays(run(embedder, EmbedRequest("after", TEXTS))["after"])
    for one, other in zip(alone, after, strict=True):
        assert np.array_equal(one, other)
    embedder.close()


def test_a_short_request_is_not_behind_a_long_one_and_a_cancelled_one_ends_once(embedder: Embedder) -> None:
    many = EmbedRequest("many", ((5,) * 100,) * 40)
    for request in (many, EmbedRequest("one", ("one",)), EmbedRequest("gone", ((7,) * 100,) * 40)):
        embedder.submit(embedder.prepare(request))
    embedder.cancel("gone")
    embedder.cancel("never there")
    order = []
    while not embedder.is_idle:
        order += [event.request_id for event in embedder.step() if isinstance(event, Ended)]
    assert order == ["gone", "one", "many"]


def test_texts_of_higher_lanes_go_first_unless_a_lower_one_waits_for_long(embedder: Embedder) -> None:
    now = 100.0
    embedder.clock = lambda: now

    def submit(name: str, lane: Lane) -> None:
        embedder.submit(embedder.prepare(EmbedRequest(name, TEXTS[:1], lane=lane)))

    def order() -> list[str]:
        ended: list[str] = []
        while not embedder.is_idle:
            ended += [event.request_id for event in embedder.step() if isinstance(event, Ended)]
        return ended

    for lane in reversed(Lane):
        submit(lane.value, lane)
    assert order() == ["fast", "standard", "batch"]
    submit("old", Lane.BATCH)
    now += 26
    submit("new", Lane.STANDARD)
    submit("urgent", Lane.FAST)
    assert order() == ["urgent", "old", "new"]


def test_a_model_that_cannot_write_refuses_a_prompt_and_has_no_slots(embedder: Embedder) -> None:
    for request in (Request("a", "text"), SlotRequest("a", 0, "erase")):
        with pytest.raises(BadRequest, match="cannot write"):
            embedder.prepare(request)


@pytest.fixture(scope="module", params=[("last", 3), ("mean", 1)])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Engines, Embedder, int]]:
    """A model that writes, with vectors beside; longer texts than a batch come in parts where the last row counts."""
    kind, number = request.param
    with open_engine(EMBER_DRAFT) as engine:
        options = EngineOptions(str(EMBER_DRAFT), pooling=kind)
        loaded = SimpleNamespace(n_ctx=engine.n_ctx, n_threads=1, n_gpu_layers=0)
        embedder = embedder_beside(engine, options, loaded)
        yield Engines(engine, embedder), embedder, number
        embedder.close()


def test_a_model_that_writes_gives_vectors_between_the_steps_of_a_chat(pair: tuple[Engines, Embedder, int]) -> None:
    """The chat's text stays as it is."""
    engines, _, number = pair
    story = Request("story", "Once upon a time", 40, sampling=SamplingParams(temperature=0, ignore_eos=True))
    alone = "".join(event.text for event in _events(engines, story) if isinstance(event, (Token, Ended)))
    long = tuple(range(100, 800))
    events = _events(engines, story, EmbedRequest("a", (*TEXTS, long), norm=-1))
    assert "".join(e.text for e in events if isinstance(e, (Token, Ended)) and e.request_id == "story") == alone
    answer = next(event for event in events if isinstance(event, Embedded))
    for vectors, text in zip(arrays(answer), (*TEXTS, long), strict=True):
        tokens = engines.main.vocab.tokenize(text) if isinstance(text, str) else np.array(text, np.int32)
        expected = plain(EMBER_DRAFT, tokens, number)
        cosine = (vectors @ expected.T).item() / np.linalg.norm(vectors) / np.linalg.norm(expected)
        assert cosine > 0.999
    assert engines.is_idle


@pytest.mark.parametrize("make", [recurrent_factory.mamba, recurrent_factory.lfm2])
def test_a_recurrent_model_gives_vectors_of_more_texts_than_it_has_states(make: Callable[[Path], Path]) -> None:
    path = cached_file(f"{make.__name__}.gguf", make)
    options = EngineOptions(str(path), n_threads=1, n_slots=2, n_ctx=256, flash_attention="on")
    engine, loaded = load(options)
    embedder = embedder_beside(engine, options, loaded)
    engines = Engines(engine, embedder)
    texts = tuple(words(n, n) for n in (1, 30, 200, 255, 5, 7))
    answer = next(event for event in _events(engines, EmbedRequest("a", texts, norm=-1)) if isinstance(event, Embedded))
    for vectors, text in zip(arrays(answer), texts, strict=True):
        np.testing.assert_allclose(vectors, plain(path, np.array(text, np.int32), 3), rtol=1e-3, atol=1e-4)
    engines.close()


def test_texts_of_the_batch_lane_let_chats_go_first_and_have_their_turn(pair: tuple[Engines, Embedder, int]) -> None:
    engines, embedder, _ = pair
    story = Request("story", "Once upon a time", 12, sampling=SamplingParams(temperature=0, ignore_eos=True))

    def order(request: EmbedRequest) -> list[str]:
        return [event.request_id for event in _events(engines, story, request) if isinstance(event, Ended)]

    assert order(EmbedRequest("later", TEXTS[:1], lane=Lane.BATCH)) == ["story", "later"]
    assert order(EmbedRequest("beside", TEXTS[:1])) == ["beside", "story"]
    engines.submit(engines.prepare(story))
    engines.submit(engines.prepare(EmbedRequest("long ago", TEXTS[:1], lane=Lane.BATCH)))
    clock = embedder.clock
    embedder.clock = lambda: clock() + 60.0
    ended: list[str] = []
    while not engines.is_idle:
        ended += [event.request_id for event in engines.step() if isinstance(event, Ended)]
    embedder.clock = clock
    assert ended == ["long ago", "story"]


def _events(engines: Engines, *requests: Request | EmbedRequest) -> list[RequestEvent]:
    for request in requests:
        engines.submit(engines.prepare(request))
    events: list[RequestEvent] = []
    while not engines.is_idle:
        events += engines.step()
    assert [event.reason for event in events if isinstance(event, Ended)].count(FinishReason.FAILED) == 0
    return events
