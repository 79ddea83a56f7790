"""Prepares requests before the engine's thread takes them: checks, tokens, grammar and sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.kv_cache.prefix_tree import is_image
from core.llama.model import Model, Vocab
from core.sampling.grammar import GrammarCompiler
from core.sampling.sampler import Sampler, draw_seed
from core.sampling.thinking import Guide, ThinkingGuide, ThinkingMarkers
from core.scheduler.images import ImageRows, PromptReader
from core.values.errors import BadRequest, PromptTooLong
from core.values.request import Detokenized, DetokenizeRequest, Request, Tokenized, TokenizeRequest
from models.formatting.sentence import Sentence

# To see whether a long text fits, this many characters per token of context are tokenised first; English has about four
# per token.
_BEGINNING = 8
# Sets of markers whose tokens are kept. A model has one form of reply, or one with and one without tools.
_MOST_FORMS = 16


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be submitted. ``tokens`` has shape (n_prompt,); ``sampler`` has seen them.

    The rows of ``images`` are in ``tokens`` with ids of their own. ``shown`` has the texts of the special
    tokens that are part of the reply's text. Submitting hands it over; else its sampler must be closed.
    """

    request: Request
    tokens: npt.NDArray[np.int32]
    sampler: Sampler
    shown: Mapping[int, bytes] = field(default_factory=dict)
    images: tuple[ImageRows, ...] = ()


def checked_tokens(tokens: Sequence[int], vocab: Vocab, param: str) -> npt.NDArray[np.int32]:
    """Return the ids as an array; raises BadRequest for an id outside the vocabulary."""
    bad = next((token for token in tokens if not 0 <= token < vocab.n_tokens), None)
    if bad is not None:
        raise BadRequest(f"{bad} is no token: this model has tokens 0 to {vocab.n_tokens - 1}.", param=param)
    return np.array(tokens, np.int32)


def convert(
    request: TokenizeRequest | DetokenizeRequest, vocab: Vocab, images: PromptReader | None = None
) -> Tokenized | Detokenized:
    """Turn text into tokens or back as llama-server (``tokenize_mixed``, ``tokens_to_str``); raises BadRequest.

    ``images`` reads prompts with images, which have no bytes.
    """
    if isinstance(request, DetokenizeRequest):
        tokens = checked_tokens(request.tokens, vocab, "tokens").tolist()
        return Detokenized(request.id, b"".join(map(vocab.bytes_of, tokens)).decode("utf-8", "replace"))
    if request.images:
        rows = _reader(images).read(str(request.parts[0]), request.images, vocab)[0].tolist()
        return Tokenized(request.id, tuple(rows), (b"",) * len(rows))
    found: list[int] = []
    for index, part in enumerate(request.parts):
        if isinstance(part, str):
            with_special = request.add_special and index == 0
            found += vocab.tokenize(part, add_special=with_special, parse_special=request.parse_special).tolist()
        else:
            found += checked_tokens((part,), vocab, "content").tolist()
    return Tokenized(request.id, tuple(found), tuple(map(vocab.bytes_of, found)))


def _reader(images: PromptReader | None) -> PromptReader:
    """Return what reads prompts with images; raises BadRequest where the model cannot."""
    if images is None:
        raise BadRequest(
            "This model was loaded without a projector, so it cannot see images. Load a model that can, with its "
            "projector: a file named mmproj….gguf beside it, or the one named by the option mmproj.",
            param="messages",
        )
    return images


class InputProcessor:
    """Prepares requests for one model. Every method may be called from any thread."""

    def __init__(self, model: Model, n_ctx: int, images: PromptReader | None = None) -> None:
        """``n_ctx`` is the context of one request in tokens; ``images`` reads prompts with images, if the model can."""
        self.images = images
        self.model = model
        self.vocab = model.vocab
        self.n_ctx = n_ctx
        self._grammars = GrammarCompiler(self.vocab)
        self._shown = lru_cache(_MOST_FORMS)(self.vocab.specials_in)

    def prepare(self, request: Request, tokens: npt.NDArray[np.int32] | None = None) -> PreparedRequest:
        """Tokenise, unless ``tokens`` are the prompt's, and check. Raises PromptTooLong and BadRequest."""
        images: tuple[ImageRows, ...] = ()
        if tokens is None:
            tokens, images = self._read_images(request) if request.images else (self.tokenize(request), ())
        params = request.sampling
        seed = draw_seed() if params.seed is None else params.seed
        # With a large vocabulary, building its tables can take as long as a few steps.
        grammar = self._grammars.matcher(request.constraint) if request.constraint is not None else None
        guide: Guide | None = grammar
        if (budget := request.thinking) is not None:
            markers = ThinkingMarkers(budget, self.vocab)
            guide = ThinkingGuide(markers, grammar, budget.n_tokens, begins_inside=budget.begins_inside)
        sampler = Sampler(self.model, params, seed, self.n_ctx, guide)
        for token in tokens[len(tokens) - min(len(tokens), sampler.memory_length) :]:
            if not is_image(token):
                sampler.remember(int(token))
        return PreparedRequest(request, tokens, sampler, self._shown(request.markers), images)

    def tokenize(self, request: Request) -> npt.NDArray[np.int32]:
        """Return the prompt's tokens. Raises PromptTooLong and BadRequest."""
        if isinstance(request.prompt, str):
            tokens = self._tokens(request.prompt)
        else:
            tokens = checked_tokens(request.prompt, self.vocab, "prompt")
        if not len(tokens):
            raise BadRequest(Sentence("The prompt is empty: send at least one token of text."), param="prompt")
        if len(tokens) >= self.n_ctx:
            raise PromptTooLong(len(tokens), self.n_ctx)
        return tokens

    def _read_images(self, request: Request) -> tuple[npt.NDArray[np.int32], tuple[ImageRows, ...]]:
        reader = _reader(self.images)
        assert isinstance(request.prompt, str)
        # Refuse a text that is too long before reading its images.
        self._tokens(request.prompt)
        tokens, images = reader.read(request.prompt, request.images, self.vocab)
        if len(tokens) >= self.n_ctx:
            raise PromptTooLong(len(tokens), self.n_ctx)
        return tokens, images

    def _tokens(self, text: str) -> npt.NDArray[np.int32]:
        """Return a text's tokens; refuse a text that cannot fit as soon as that is certain.

        Tokenising a pasted file of 5 MB takes seconds, for which other requests would wait.
        """
        n_chars = _BEGINNING * self.n_ctx
        n_begun = n_read = 0
        while True:
            # No token has more bytes than the longest piece. The text after the beginning may change the beginning's
            # last tokens, but never half of them.
            n_left = len(text[n_read:].encode("utf-8", "replace"))
            n_least = n_begun // 2 + n_left // self.vocab.longest_piece
            if n_least >= self.n_ctx:
                raise PromptTooLong(n_least, self.n_ctx, at_least=True)
            if n_chars >= len(text):
                return self.vocab.tokenize(text)
            n_begun, n_read = len(self.vocab.tokenize(text[:n_chars])), n_chars
            n_chars *= 2
