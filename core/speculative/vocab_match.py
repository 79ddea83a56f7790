"""May one model draft for another? Only if the same token ids mean the same text."""

from __future__ import annotations

from core.llama.vocab import Vocab

# As llama.cpp's common_speculative_are_compatible: sizes may differ by padding, the first ids by special tokens.
_MOST_SIZE_DIFFERENCE = 128
_FIRST_COMPARED = 5
_SHOWN = 3


def why_not(target: Vocab, draft: Vocab) -> str | None:
    """Return why ``draft`` cannot draft for ``target``, as a sentence, or None where it can."""
    if target.kind != draft.kind:
        return f"Its tokenizer is of another kind ({draft.kind} instead of {target.kind})."
    if (target.adds_begin, target.adds_end) != (draft.adds_begin, draft.adds_end):
        return "It begins or ends texts with other special tokens."
    if abs(target.n_tokens - draft.n_tokens) > _MOST_SIZE_DIFFERENCE:
        return f"It has {draft.n_tokens:,} tokens and the model {target.n_tokens:,}."
    common = range(_FIRST_COMPARED, min(target.n_tokens, draft.n_tokens))
    differing = [token for token in common if target.raw_text(token) != draft.raw_text(token)]
    if differing:
        shown = ", ".join(f"{token} is {draft.raw_text(token)!r}" for token in differing[:_SHOWN])
        return f"{len(differing):,} token ids mean another text: {shown} and so on."
    return None
