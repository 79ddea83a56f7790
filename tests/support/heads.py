"""Models with heads, what a head is to propose, and a look at what it proposes and says of the same anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from core.engine.engine import Engine
from core.kv_cache.memory import CheckpointMemory, RecurrentMemory
from core.speculation.proposers.heads import AutoregressiveHead, DFlashProposer
from core.speculation.proposers.proposer import DraftChain, ProposedToken
from tests.support.engines import complete, open_engine
from tests.support.prompts import EMBER, ENDLESS
from tools.model_factory import gguf_factory, head_factory, hybrid_factory

KINDS = ("mtp", "eagle3", "dflash")
# By architecture, the way back from rejected drafts: llama.cpp keeps snapshots of some states.
HYBRIDS: dict[str, type] = {
    "qwen35": RecurrentMemory,
    "qwen35moe": RecurrentMemory,
    "nemotron_h_moe": RecurrentMemory,
    "bailingmoe3": RecurrentMemory,
    "qwen3next": CheckpointMemory,
}
COUNTING = tuple(range(500, 520))


class Setting(NamedTuple):
    """A target and what to load beside it."""

    path: Path
    options: dict[str, Any]


def use(setting: Setting, **options: Any) -> AbstractContextManager[Engine]:
    """Open an engine that drafts."""
    return open_engine(
        setting.path, **{"n_slots": 4, "n_ctx": 512, "speculation": "draft", **setting.options, **options}
    )


def random_head(kind: str) -> Setting:
    """Ember with a head that knows nothing."""
    makers = {"mtp": head_factory.mtp_ember, "eagle3": head_factory.eagle_head, "dflash": head_factory.dflash_head}
    path = gguf_factory.cached_file(f"{kind}-random.gguf", makers[kind])
    return Setting(path, {}) if kind == "mtp" else Setting(EMBER, {"draft_path": str(path)})


def counting(kind: str, n_layers: int = 1, step: int = 1) -> Setting:
    """The model that counts, with a head of ``kind`` that is always right with its first token."""
    if kind == "mtp":
        return Setting(head_factory.cached_mtp_counter(n_layers), {})
    n_layers += 3
    name = f"counter-{n_layers}-{step}.gguf"
    path = gguf_factory.cached_file(name, lambda path: head_factory.counter(path, n_layers, step))
    make = head_factory.eagle_head if kind == "eagle3" else head_factory.dflash_head
    head = gguf_factory.cached_file(f"{kind}-counter-{step}.gguf", lambda path: make(path, "counter", step=step))
    return Setting(path, {"draft_path": str(head)})


def hybrid(architecture: str, head: str = "counts") -> Setting:
    """A model with a recurrent state and prediction heads that count or know nothing."""
    make: Callable[..., Path] = getattr(hybrid_factory, architecture)
    name = f"hybrid-{architecture}-{head}.gguf"
    return Setting(gguf_factory.cached_file(name, lambda path: make(path, head)), {})


def following(texts: list[list[int]], distance: int) -> dict[int, int]:
    """The token that most often comes ``distance`` places after each token."""
    counts: dict[int, Counter[int]] = {}
    for text in texts:
        for token, later in zip(text, text[distance:], strict=False):
            counts.setdefault(token, Counter())[later] += 1
    return {token: found.most_common(1)[0][0] for token, found in counts.items()}


def head_of(engine: Engine) -> AutoregressiveHead | DFlashProposer:
    speculator = engine.speculator
    assert speculator is not None
    (head,) = speculator.paid
    assert isinstance(head, AutoregressiveHead | DFlashProposer)
    return head


class Recorder:
    """Writes down what a head proposes first, with the text before it."""

    def __init__(self, head: AutoregressiveHead | DFlashProposer) -> None:
        self.seen: list[tuple[list[int], int]] = []
        self._extend: Callable[[list[DraftChain]], list[ProposedToken | None]] = head.extend
        head.extend = self.extend

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        guesses = self._extend(chains)
        for chain, guess in zip(chains, guesses, strict=True):
            if guess is not None and not chain.tokens:
                self.seen.append((chain.sequence.tokens.view.tolist(), guess.token))
        return guesses


def says_at_once(engine: Engine, recorder: Recorder, text: list[int]) -> int | None:
    """Let target and head read a text from empty caches, and return the token that the head proposes.

    The last token is the target's own. None where it now chooses another one.
    """
    engine.forget_texts()
    head_of(engine).clear()
    n_before = len(recorder.seen)
    complete(engine, tuple(text[:-1]), max_tokens=3, sampling=ENDLESS)
    return next((token for seen, token in recorder.seen[n_before:] if seen == text), None)
