"""The errors of GGUF files, as one tree.

GgufError
├── UnreadableFile   the file is missing, is no file, or may not be read
├── NotGguf          the file is something else
├── TruncatedGguf    the file is shorter than its header announces
└── BadGguf          the header contradicts itself or goes beyond what a model can hold
"""

from __future__ import annotations

from models.formatting.sentence import Sentence, SentenceError


class GgufError(SentenceError):
    """Base of every error about a model file: its text says what happened and what to do."""


class UnreadableFile(GgufError):
    """The file is missing, is not a plain file, or may not be read."""


class NotGguf(GgufError):
    """The file is not a GGUF model at all."""


class TruncatedGguf(GgufError):
    """The file has ``actual`` bytes, and at least ``needed`` belong to it."""

    def __init__(self, name: str, needed: int, actual: int) -> None:
        super().__init__(
            "{name} is incomplete: it has {actual:,} bytes, and at least {needed:,} belong to it. The "
            "download or the copy was probably cut short: download the file again.",
            name=name,
            actual=actual,
            needed=needed,
        )


class BadGguf(GgufError):
    """The header is damaged, hostile, or of a kind that llama.cpp does not read."""

    def __init__(self, name: str, what: str, advice: str = Sentence("The file is damaged: download it again.")) -> None:
        super().__init__("{name} cannot be read: {what}. {advice}", name=name, what=what, advice=advice)
