"""All errors of the core, as one tree.

SlipstreamError
├── BadOption        an engine option that cannot be used
├── BadRequest       a request that can never be served as it is
│   ├── PromptTooLong
│   └── InputTooLong
├── BrokenLogits     the model computed logits that are not finite
├── LoadFailed       a model that did not load
│   ├── DraftRefused
│   ├── ModelDoesNotFit
│   └── WorkerUnavailable
└── EngineUnavailable  no engine can take the request now
"""

from __future__ import annotations

import re

from models.formatting.sentence import Sentence, SentenceError


class SlipstreamError(SentenceError):
    """Base of every error shown to a user: its text says what happened and what to do."""

    @property
    def message(self) -> str:
        """The sentence for the user."""
        return str(self)


class BadOption(SlipstreamError):
    """An engine option that cannot be used."""


class BadRequest(SlipstreamError):
    """A request that can never be served as it is; ``param`` names the field, ``code`` is OpenAI's error code."""

    code: str | None = None

    def __init__(self, text: str, /, param: str | None = None, **facts: object) -> None:
        super().__init__(text, **facts)
        self.param = param


class PromptTooLong(BadRequest):
    """The prompt does not fit into the context; both numbers are in the text."""

    code = "context_length_exceeded"

    def __init__(self, n_prompt: int, n_ctx: int, at_least: bool = False) -> None:
        count = f"at least {n_prompt}" if at_least else str(n_prompt)
        super().__init__(
            # Agents look for "exceeds the available context size", llama-server's words, to shorten their chat.
            f"The prompt has {count} tokens, which exceeds the available context size of {n_ctx} with the one that is "
            "needed for the answer. "
            "Shorten the prompt or load the model with a larger context.",
            param="messages",
        )
        self.n_prompt, self.n_ctx = n_prompt, n_ctx


class InputTooLong(BadRequest):
    """An input for vectors that is longer than the model's context."""

    code = "context_length_exceeded"

    def __init__(self, index: int, n_tokens: int, n_most: int) -> None:
        super().__init__(
            "Input {index} has {n_tokens:,} tokens, and this model takes {n_most:,} at most. Shorten it, "
            "or send it in parts.",
            index=index,
            n_tokens=n_tokens,
            n_most=n_most,
            param="input",
        )
        self.n_prompt, self.n_ctx = n_tokens, n_most


class BrokenLogits(SlipstreamError):
    """The model computed logits from which no token can be chosen (NaN or infinity)."""

    def __init__(self) -> None:
        super().__init__(
            Sentence(
                "The model computed values that are not numbers, so no token can be chosen. Its file may be "
                "damaged, or it needs a KV cache of type f32 or bf16."
            )
        )


class LoadFailed(SlipstreamError):
    """A model that did not load; the text gives llama.cpp's reason where there is one."""


class DraftRefused(LoadFailed):
    """A draft model or head that cannot draft for the model, or that did not load."""


class ModelDoesNotFit(LoadFailed):
    """The model needs more memory than is free. Both are bytes of ``device`` ("": all memory)."""

    def __init__(self, needed: int, free: int, detail: str = "", device: str = "") -> None:
        super().__init__(
            "This model needs {needed:size} of memory{where}, and {free:size} is free. {detail}",
            needed=needed,
            where=Sentence(" on {device}", device=device) if device else "",
            free=free,
            detail=detail or Sentence("Choose a smaller quantisation, a smaller context, or close other programs."),
        )


class WorkerUnavailable(LoadFailed):
    """A worker on another machine whose devices cannot be used now; the text says what to do."""


class EngineUnavailable(SlipstreamError):
    """No engine takes the request now. ``retry_after`` is seconds until one may, None if unknown."""

    def __init__(self, text: str, /, retry_after: float | None = None, **facts: object) -> None:
        super().__init__(text, **facts)
        self.retry_after = retry_after


# Precedes an error of llama.cpp in the engine's log. During a load all lines are logged, without it.
LLAMA_ERROR = "llama.cpp error: "
# Also the line that ggml aborts with, unless it only repeats that there was an error. Lines with more blanks say where
# it was, and llama_decode's that another line was logged. Python's warnings look like ggml's lines.
_SAID = re.compile(
    rf"^(?:{re.escape(LLAMA_ERROR)}(?=\S)(?!llama_decode:)|(?=\w+ error: )|\S+\.(?!py:)\w+:\d+: (?!\w+ error$))"
    r"(.{1,200})",
    re.MULTILINE,
)


def llama_error_in(log: str) -> str:
    """Return the last error of llama.cpp or ggml in a log; "" if there is none."""
    found = _SAID.findall(log)
    return str(found[-1]).strip() if found else ""
