"""Everything about one request while the engine works on it, with the text that it has so far."""

from __future__ import annotations

from dataclasses import dataclass
from encodings.utf_8 import IncrementalDecoder
from typing import TYPE_CHECKING

from core.kv_cache.slot import TokenBuffer
from core.values.messages import PromptRead

if TYPE_CHECKING:
    from core.kv_cache.prefix_tree import TokenIds
    from core.kv_cache.slot import PlacementWait, Slot
    from core.scheduler.images import Encoding, ImageRows
    from core.scheduler.input_processor import PreparedRequest
    from core.values.messages import CacheMiss


class TextStream:
    """The growing text of one request. The cost of a token does not depend on the text's length.

    Bytes of an unfinished UTF-8 character are held back, as is text that may turn out to begin a stop string.
    Invalid bytes become U+FFFD.
    """

    def __init__(self, stops: tuple[str, ...] = ()) -> None:
        """``stops`` are the strings before which the text ends."""
        self._decoder = IncrementalDecoder("replace")
        self._stops = stops
        self._longest = max((len(stop) for stop in stops), default=0)
        self._held = ""
        self.stop: str | None = None

    def feed(self, piece: bytes) -> str:
        """Take a token's bytes; return the text that can be shown now. Sets ``stop`` when a stop string is complete."""
        # Most pieces are ASCII: the decoder is needed only if it holds the beginning of a character.
        text = piece.decode("ascii") if piece.isascii() and not self._decoder.buffer else self._decoder.decode(piece)
        if not self._stops:
            return text
        return self._release(self._held + text) if text else ""

    def flush(self) -> str:
        """Return what was held back, at the end of the text."""
        if self.stop is not None:
            return ""
        rest = self._decoder.decode(b"", final=True)
        if not self._stops:
            return rest
        shown = self._release(self._held + rest)
        if self.stop is None:
            shown, self._held = shown + self._held, ""
        return shown

    def _release(self, text: str) -> str:
        """Split ``text`` into what may be shown and what is held back."""
        found = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, self.stop = min(found)
            self._held = ""
            return text[:at]
        keep = self._longest_beginning_of_a_stop(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def _longest_beginning_of_a_stop(self, text: str) -> int:
        """Return the length of the longest suffix of ``text`` that is a prefix of a stop string."""
        for size in range(min(len(text), self._longest - 1), 0, -1):
            tail = text[-size:]
            if any(stop.startswith(tail) for stop in self._stops):
                return size
        return 0


# A speed-up is given only if the plain step time is known for more than this share of the reply's tokens.
_COMPARED_SHARE = 0.5


@dataclass(slots=True)
class RequestCost:
    """Sums over the steps in which a request decoded, from its first token on.

    ``n_compared`` of the ``n_tokens`` tokens came from ``n_steps`` steps for which the plain step time is known. These
    steps took ``spent`` seconds; plain decoding of the same tokens takes ``plain`` seconds. ``n_bytes`` is the
    request's share of the bytes read. ``all_bytes``, ``seconds``, ``all_rows`` and ``all_kv`` are of ``n_whole`` whole
    steps: those without prefill.
    """

    n_tokens: int = 0
    n_compared: int = 0
    n_steps: int = 0
    plain: float = 0.0
    spent: float = 0.0
    n_bytes: float = 0.0
    n_whole: int = 0
    all_bytes: float = 0.0
    all_rows: int = 0
    all_kv: int = 0
    seconds: float = 0.0

    @property
    def bytes_per_token(self) -> float:
        """Bytes read for each token; 0 where nothing was decoded."""
        return self.n_bytes / self.n_tokens if self.n_tokens else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes that the machine read per second while the request decoded; 0 where that is not known."""
        return self.all_bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def plain_seconds(self) -> float | None:
        """Seconds per token without drafts, from observed plain steps; None where there are too few."""
        is_known = self.n_compared > _COMPARED_SHARE * self.n_tokens and self.plain > 0
        return self.plain / self.n_compared if is_known else None

    @property
    def speedup(self) -> float | None:
        """Speed relative to plain decoding; None where too few plain steps were seen.

        It is limited to the tokens per step, since a step with drafts is never faster than one without.
        """
        if self.plain_seconds is None or self.spent <= 0:
            return None
        return min(self.plain / self.spent, self.n_compared / self.n_steps)


class Sequence:
    """A request with its tokens, its place in the KV cache and its clock times (seconds, the engine's clock).

    ``tokens`` holds prompt and generated tokens; the first ``n_past`` of them are in the cache. Prefill and decode are
    the same thing here: pending rows. The first ``n_replay`` pending rows were lost with a rejected draft (see
    ``CheckpointMemory``) and count as decoding. It has a ``slot`` only while it runs, and keeps it for at least
    ``term`` seconds. ``rode_at`` is the number of its latest ride with the fast lane, counted over all requests.
    ``encodings`` are those of its images that are evaluated now or soon, by the image's hash.
    """

    slot: Slot

    def __init__(self, prepared: PreparedRequest, *, order: int, submitted_at: float) -> None:
        """``order`` is the place in the order of arrival."""
        request = prepared.request
        self.request = request
        self.id = request.id
        self.lane = request.lane
        self.lora = request.lora
        self.order = order
        self.tokens = TokenBuffer(prepared.tokens, request.salt)
        self.n_prompt = len(prepared.tokens)
        self.images = prepared.images
        self.encodings: dict[bytes, Encoding] = {}
        self.n_past = 0
        self.n_replay = 0
        self.n_cached = 0
        self.n_generated = 0
        self.n_drafted = 0
        self.n_accepted = 0
        self.n_judged = 0
        self.n_right = 0
        # Tokens of the prompt whose log probabilities are known. Nothing precedes the first.
        self.n_scored = 1
        self.account = RequestCost()
        self.sampler = prepared.sampler
        self.shown = prepared.shown
        self.text = TextStream(request.stop)
        self.hold: PlacementWait | None = None
        self.divergence: tuple[int, TokenIds, TokenIds] | None = None
        self.cache_miss: CacheMiss | None = None
        self.was_started = False
        self.n_unreported = 0
        self.term = 0.0
        self.rode_at = 0
        self.submitted_at = self.waiting_since = submitted_at
        self.placed_at = 0.0
        self.started_at = 0.0
        self.first_token_at = 0.0
        self.last_token_at = 0.0

    @property
    def ttft(self) -> float:
        """Seconds from its arrival to its first token; 0 while there is none."""
        return self.first_token_at - self.submitted_at if self.first_token_at else 0.0

    @property
    def n_pending(self) -> int:
        """Tokens that are not in the cache yet."""
        return self.tokens.size - self.n_past

    @property
    def is_prefilling(self) -> bool:
        """True while more rows are pending than the latest token and the replayed ones."""
        return self.n_pending > 1 + self.n_replay

    @property
    def is_scoring(self) -> bool:
        """True while log probabilities of prompt tokens are still to be computed."""
        return self.request.prompt_logprobs and self.n_scored < self.n_prompt

    @property
    def next_image(self) -> ImageRows | None:
        """The next image rows to evaluate; None if only text is left."""
        return next((rows for rows in self.images if rows.end > self.n_past), None)

    @property
    def image(self) -> ImageRows | None:
        """The image rows that include the next row; None if that is text."""
        rows = self.next_image
        return rows if rows is not None and rows.start <= self.n_past else None

    def n_left(self, n_ctx: int) -> int:
        """Return how many more tokens may be generated in a context of ``n_ctx``."""
        room = n_ctx - self.tokens.size
        limit = self.request.max_tokens
        return room if limit is None else min(room, limit - self.n_generated)

    @property
    def is_exhausted(self) -> bool:
        """True when ``max_tokens`` is used up."""
        limit = self.request.max_tokens
        return limit is not None and self.n_generated >= limit

    def progress(self, now: float) -> PromptRead:
        """Return how much of the prompt is in the cache."""
        return PromptRead(self.id, self.n_prompt, self.n_cached, self.n_past, now - self.started_at)
