"""The bundled models, and what tests ask them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.values.request import SamplingParams

STARTER = Path(__file__).resolve().parent.parent.parent / "models" / "starter"
EMBER = STARTER / "ember-q8_0.gguf"
EMBER_DRAFT = STARTER / "ember-draft-q8_0.gguf"


def chat(text: str) -> str:
    """Return a user's turn in Ember's chat format."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


FOX = chat("Tell me a story about a fox.")
# Stories have near-ties from their first word on, which steps of other widths decide otherwise. Of this answer, each
# of the first sixty tokens is e^5 times as likely as the next best one: for tests that compare whole texts.
SURE = chat("What is speculative decoding?")
PROMPTS = (FOX, chat("Who are you?"), chat("List the planets."), "def add(a, b):\n", chat("Count to five."))
GREEDY = SamplingParams(temperature=0)
ENDLESS = SamplingParams(temperature=0, ignore_eos=True)


def words(n: int, seed: int = 0) -> tuple[int, ...]:
    """Return token ids that look like nothing else."""
    return tuple(np.random.default_rng(seed).integers(20, 4000, n).tolist())
