"""What a request needs before the model's thread takes it: its tokens, checked, and its sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.errors import BadRequest, PromptTooLong
from core.guidance.grammars import Grammars
from core.keyed_noise import draw_seed
from core.llama.model import Model
from core.llama.vocab import Vocab
from core.request import Request
from core.sampler import Sampler


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that can be submitted. ``tokens`` has shape (n_prompt,); ``sampler`` has seen them.

    Whoever submits it gives it away; whoever does not closes it.
    """

    request: Request
    tokens: npt.NDArray[np.int32]
    sampler: Sampler

    def close(self) -> None:
        """Free what the sampler holds."""
        self.sampler.close()


class Intake:
    """Prepares requests for one model. Every method may be called from any thread."""

    def __init__(self, model: Model, vocab: Vocab, n_ctx: int) -> None:
        """``n_ctx`` is the context of one request in tokens."""
        self._model = model
        self._vocab = vocab
        self._n_ctx = n_ctx
        self._grammars = Grammars(vocab)

    def prepare(self, request: Request, tokens: npt.NDArray[np.int32] | None = None) -> Prepared:
        """Tokenise, unless ``tokens`` are the prompt's, and check. Raises PromptTooLong and BadRequest."""
        if tokens is None:
            tokens = self.tokenize(request)
        params = request.sampling
        seed = draw_seed() if params.seed is None else params.seed
        # Its tables can take as long as a few steps to build where the vocabulary is large.
        guide = self._grammars.guide(request.constraint) if request.constraint is not None else None
        sampler = Sampler(self._model, self._vocab, params, seed, self._n_ctx, guide)
        for token in tokens[len(tokens) - min(len(tokens), sampler.memory_length) :]:
            sampler.remember(int(token))
        return Prepared(request, tokens, sampler)

    def tokenize(self, request: Request) -> npt.NDArray[np.int32]:
        """Return the prompt's tokens. Raises PromptTooLong and BadRequest."""
        if isinstance(request.prompt, str):
            # No token has more bytes than the longest piece, so an absurdly long text is refused unread.
            n_least = len(request.prompt.encode("utf-8", "replace")) // self._vocab.longest_piece
            if n_least >= self._n_ctx:
                raise PromptTooLong(n_least, self._n_ctx, at_least=True)
            tokens = self._vocab.tokenize(request.prompt)
        else:
            n_tokens = self._vocab.n_tokens
            bad = next((token for token in request.prompt if not 0 <= token < n_tokens), None)
            if bad is not None:
                raise BadRequest(f"{bad} is no token: this model has tokens 0 to {n_tokens - 1}.", param="prompt")
            tokens = np.array(request.prompt, np.int32)
        if not len(tokens):
            raise BadRequest("The prompt is empty: send at least one token of text.", param="prompt")
        if len(tokens) >= self._n_ctx:
            raise PromptTooLong(len(tokens), self._n_ctx)
        return tokens
