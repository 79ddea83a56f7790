"""The account of riders: what they add to the steps of the fast lane, and how much they still may. Pure."""

from __future__ import annotations

# What riders may add to the fast lane's time: the promise is a tenth, and the rest is for what no clock of ours sees,
# as the work of the server for their replies.
RIDE_SHARE = 0.06
# Rides that are felt come so many steps apart. The step after one is slower too (another graph, colder caches), so that
# two gaps of so many are long ones: less than one in twenty, and the 95th percentile stays what it is alone.
RIDE_INTERVAL = 41
# At most so many steps' time is saved up, that of one interval: a ride must not become a pause. Only where even the
# least of rides costs more, that is saved.
_MOST_SAVED = RIDE_SHARE * (RIDE_INTERVAL + 1)
# So many steps after a ride still feel it (its events are being sent): they are its cost, and no measure of what a
# step takes alone.
_AFTERMATH = 2
# Where riders are in every step, there is one without them after so many, to know what they add.
_CONTROL_STEPS = 128
_LONE_RATE, _ROW_RATE = 0.05, 0.1
# A single step may be slow for reasons of its own: estimates take it as this many times the usual at most.
_OUTLIER = 2.0
# What took longer than this many steps was a suspended machine: riders do not pay for that for ever.
_HICCUP = 20.0


class InterferenceBudget:
    """Lets riders join steps of the fast lane as far as these stay as fast as alone.

    Steps earn a share of what they take alone, riders pay what they have added: by the clock, whatever was predicted.
    What steps take alone is measured too, in those without riders. Rides that cost less than a step earns are for
    every step; dearer ones are saved for and kept apart. All times in seconds; predictions are the cost model's.
    """

    def __init__(self) -> None:
        """Begin with nothing, believing the predictions."""
        self.balance = 0.0
        self._lone_ratio = 1.0
        self._row_seconds = 0.0
        self._least = 0.0
        self._since_ride = RIDE_INTERVAL
        self._since_lone = 0

    def alone_seconds(self, predicted: float) -> float:
        """Return what a step is expected to take without riders."""
        return predicted * self._lone_ratio

    def cost(self, predicted: float, n_rows: int) -> float:
        """Return what ``n_rows`` rows of riders are expected to add where the cost model says ``predicted``."""
        return max(predicted + self._row_seconds * n_rows, 0.25 * predicted)

    def allowance(self, predicted: float, least: float) -> float:
        """Return what riders may add to the next step, which is ``predicted`` without them; 0 is a normal answer.

        ``least`` is the price of the cheapest ride.
        """
        self._least = least
        steady = RIDE_SHARE * self.alone_seconds(predicted)
        if self._since_lone > _CONTROL_STEPS or self.balance < 0.0:
            return 0.0
        if least <= steady:
            return steady
        if self._since_ride < RIDE_INTERVAL or self.balance < least:
            return 0.0
        return self.balance

    def observe(self, seconds: float, predicted: float, extra: float = 0.0, n_riding: int = 0) -> None:
        """Record a step that took ``seconds``.

        ``predicted`` is the cost model's time without riders, ``extra`` what it adds for their ``n_riding`` rows.
        """
        lone = self.alone_seconds(predicted)
        if lone <= 0.0 or seconds <= 0.0:
            return
        self._earn(lone)
        if n_riding:
            self._learn_row(seconds - lone, extra, n_riding, lone)
            self._spend(seconds - lone, lone)
            self._since_ride = 0
            self._since_lone += 1
            return
        self._since_ride += 1
        if self._since_ride <= _AFTERMATH:
            self._spend(seconds - lone, lone)
            return
        ratio = min(max(seconds / lone, 1.0 / _OUTLIER), _OUTLIER)
        self._lone_ratio *= 1.0 + _LONE_RATE * (ratio - 1.0)
        self._since_lone = 0

    def start_over(self) -> None:
        """Another request begins: what was saved beside those before is not spent on it, a short one might not last."""
        self.balance = min(self.balance, 0.0)

    def book_pause(self, seconds: float, predicted: float) -> None:
        """Record ``seconds`` in which the fast lane waited for something else; a step is ``predicted``."""
        self._spend(seconds, self.alone_seconds(predicted))
        self._since_ride = 0

    def _earn(self, lone: float) -> None:
        most = max(_MOST_SAVED * lone, self._least)
        self.balance = min(self.balance + RIDE_SHARE * lone, max(most, self.balance))

    def _spend(self, seconds: float, lone: float) -> None:
        self.balance = max(self.balance - min(seconds, _HICCUP * lone), -_HICCUP * lone)

    def _learn_row(self, measured: float, extra: float, n_rows: int, lone: float) -> None:
        """Learn what a row adds beyond its prediction: sampling, events, or a curve that is not what was measured."""
        bound = _OUTLIER * max(self.cost(extra, n_rows), lone)
        error = min(max(measured - extra, -bound), bound) / n_rows
        self._row_seconds += _ROW_RATE * (error - self._row_seconds)
