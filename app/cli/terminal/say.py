"""What commands say in a terminal, where a name must not move the cursor or turn the text around."""

from __future__ import annotations

import sys

from models.formatting.safe_text import lines


def say(text: str = "") -> None:
    """Print it on standard output."""
    print(lines(text))


def say_on_stderr(text: str) -> None:
    """Print it on standard error, which does not belong to the answer."""
    print(lines(text), file=sys.stderr)
