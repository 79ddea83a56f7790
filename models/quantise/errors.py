"""What can go wrong when a model is quantised, as one tree.

QuantiseError
├── QuantiseRefused    what was asked for would lose more than it gains, or cannot be done with this model
├── QuantiseFailed     it failed after it had begun
└── QuantiseCancelled  the user cancelled it
"""

from __future__ import annotations

from models.formatting.sentence import Sentence


class QuantiseError(Exception):
    """Base of every error about quantising: its text says what happened and what to do."""


class QuantiseRefused(QuantiseError):
    """The request makes no sense for this model, or the name of the result is taken; nothing was begun.

    ``option`` is the command's option that allows it, or "".
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class QuantiseFailed(QuantiseError):
    """Quantising failed after it had begun; no file is left."""


class QuantiseCancelled(QuantiseError):
    """The user cancelled it; no file is left."""

    def __init__(self) -> None:
        super().__init__(Sentence("Cancelled. Nothing of it is left on the disk."))
