"""How many prefill rows may ride along while somebody waits for the next token."""

from __future__ import annotations

_TARGET_SECONDS = 0.1
_SMOOTHING = 0.2
_SMALLEST = 16


class PrefillPace:
    """Sizes the prefill chunk so that a step with decode rows takes about a tenth of a second.

    Learns the cost of a row from the steps themselves: steps without prefill give the base, mixed steps the rest.
    """

    def __init__(self, n_ubatch: int) -> None:
        """``n_ubatch`` is the largest chunk: more rows than one graph holds only add to the wait."""
        self._largest = n_ubatch
        self._seconds_per_row: float | None = None
        self._base = 0.0

    @property
    def chunk(self) -> int:
        """Prefill rows for the next step that also decodes."""
        if self._seconds_per_row is None:
            return min(self._largest, 64)
        room = max(_TARGET_SECONDS - self._base, _TARGET_SECONDS / 4)
        return int(max(_SMALLEST, min(self._largest, room / self._seconds_per_row)))

    def observe(self, n_decode: int, n_prefill: int, seconds: float) -> None:
        """Learn from a step of ``n_decode`` and ``n_prefill`` rows that took ``seconds``."""
        if not n_prefill:
            self._base += _SMOOTHING * (seconds - self._base)
            return
        per_row = max(seconds - (self._base if n_decode else 0.0), 1e-7) / n_prefill
        if self._seconds_per_row is None:
            self._seconds_per_row = per_row
        else:
            self._seconds_per_row += _SMOOTHING * (per_row - self._seconds_per_row)
