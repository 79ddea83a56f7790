"""What a prompt must be to enter: one that cannot fit is refused without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llama.library import silence_log
from core.llama.model import Model, Vocab
from core.scheduler.input_processor import InputProcessor, checked_tokens
from core.values.errors import BadRequest, PromptTooLong
from core.values.request import Request
from tests.support.prompts import EMBER


class CountingVocab(Vocab):
    """Counts the characters that it is given to read."""

    n_read = 0

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> npt.NDArray[np.int32]:
        self.n_read += len(text)
        return super().tokenize(text, add_special=add_special, parse_special=parse_special)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    silence_log()
    made = Model(str(EMBER))
    yield made
    made.close()


@pytest.fixture(scope="module")
def vocab(model: Model) -> CountingVocab:
    model.vocab = counting = CountingVocab(model)
    return counting


@pytest.mark.parametrize("text", ["x", "fox jumps ", "<|im_start|>"], ids=["no space", "words", "special"])
def test_of_a_text_that_is_far_too_long_only_the_beginning_is_read(
    model: Model, vocab: CountingVocab, text: str
) -> None:
    n_ctx, vocab.n_read = 5_000, 0
    prompt = text * (n_ctx * vocab.longest_piece // len(text) - 1)
    with pytest.raises(PromptTooLong, match=r"at least \d+ tokens, which exceeds the available context size of 5000"):
        InputProcessor(model, n_ctx).tokenize(Request("a", prompt))
    assert 0 < vocab.n_read < len(prompt) // 2


@given(
    st.lists(st.sampled_from(["a", " ", "fox", "\n", "é", "漢", "<|im_end|>", "the quick brown ", "0"]), min_size=1),
    st.integers(1, 60),
    st.integers(2, 40),
)
def test_a_text_is_refused_just_where_its_tokens_do_not_fit(
    model: Model, vocab: CountingVocab, parts: list[str], n_times: int, n_ctx: int
) -> None:
    prompt = "".join(parts) * n_times
    tokens = vocab.tokenize(prompt)
    intake = InputProcessor(model, n_ctx)
    if len(tokens) >= n_ctx:
        with pytest.raises(PromptTooLong) as refused:
            intake.tokenize(Request("a", prompt))
        assert n_ctx <= refused.value.n_prompt <= len(tokens)
    else:
        assert intake.tokenize(Request("a", prompt)).tolist() == tokens.tolist()


def test_tokens_outside_the_vocabulary_are_named(vocab: CountingVocab) -> None:
    last = vocab.n_tokens - 1
    assert checked_tokens([0, last], vocab, "prompt").tolist() == [0, last]
    for bad in (-1, last + 1):
        with pytest.raises(BadRequest, match=f"{bad} is no token"):
            checked_tokens([3, bad], vocab, "prompt")
