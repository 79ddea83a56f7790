"""Proposers that cost next to nothing: prompt lookup, and what a reply's grammar forces.

Prompt lookup proposes what followed the same tokens before, in this text or in earlier ones. A passage that comes again
with a name replaced is followed too, as in code that is edited.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import AcceptanceSample, DraftChain, ProposedToken, Proposer

# The longer the match, the likelier the next token: the bins of match length, and their prior acceptance rates.
_MATCH_EDGES = (4, 6, 9, 16, 32)
_LOCAL_PRIORS = (0.25, 0.4, 0.55, 0.7, 0.85, 0.93)
# Then three bins of other requests' n-grams: the token followed once, it followed the last two times, or it followed
# last and another one before.
_SHARED = len(_LOCAL_PRIORS)
_SHARED_PRIORS = (0.3, 0.7, 0.2)
# And a bin of tokens that replace those of the followed passage.
_REPLACED, _REPLACED_PRIOR = _SHARED + len(_SHARED_PRIORS), 0.6
# At most _MOST_STRAYED tokens in a row may differ from the followed passage. After them, the length of the match is
# divided by _STRAYED_SHARE.
_MOST_STRAYED, _STRAYED_SHARE = 3, 4
_LONGEST_MATCH = _MATCH_EDGES[-1]
# Size of n-grams in a text's own index.
_SIZE = 3
# Size of n-grams that requests share, and how many are kept: some 80 MB.
_SHARED_SIZE, _SHARED_LIMIT = 4, 400_000
# Tokens of a prompt that are indexed in one step, which takes about a millisecond.
_PIECE = 1024


class NgramIndex:
    """Where each n-gram of a text last occurred."""

    def __init__(self, tokens: list[int]) -> None:
        """Index a text. Its last n-gram is left out until the next token is known."""
        self.tokens: list[int] = []
        self._places: dict[tuple[int, ...], int] = {}
        self.extend(tokens)

    def extend(self, tokens: list[int]) -> None:
        """Add tokens, as ``append`` would one by one."""
        start = max(len(self.tokens), _SIZE)
        self.tokens += tokens
        seen = _windows(self.tokens[start - _SIZE :], _SIZE)
        self._places.update(zip(seen, range(start, len(self.tokens)), strict=False))

    def append(self, token: int) -> None:
        """Add a token, which follows the n-grams before it."""
        if len(self.tokens) >= _SIZE:
            self._places[tuple(self.tokens[-_SIZE:])] = len(self.tokens)
        self.tokens.append(token)

    def find(self) -> tuple[int, int] | None:
        """Return the place after the latest earlier occurrence of the text's end, and the length of the match."""
        place = self._places.get(tuple(self.tokens[-_SIZE:]))
        return (place, self._match_length(place)) if place is not None else None

    def _match_length(self, place: int) -> int:
        size, end = _SIZE, len(self.tokens)
        while size < _LONGEST_MATCH and size < place and self.tokens[place - size - 1] == self.tokens[end - size - 1]:
            size += 1
        return size


def _windows(tokens: list[int], size: int) -> Iterable[tuple[int, ...]]:
    return zip(*(itertools.islice(tokens, start, None) for start in range(size)), strict=False)


class _Track:
    """A sequence's index, and the earlier passage that the text follows; its next token is at ``source``.

    ``run`` is for how many tokens the text has followed it (0: it follows none). ``replaced`` maps tokens of the
    passage to those that the text has in their place: it did so before, and then followed the passage again.
    ``place`` and ``match`` are ``source`` and ``run`` of the present chain.
    """

    def __init__(self, salt: str) -> None:
        self.salt = salt
        self.index = NgramIndex([])
        self.source = self.run = 0
        self.place = self.match = 0
        self.replaced: dict[int, int] = {}
        # Pairs of a token of the passage and the one in its place, since the text has left the passage.
        self._strayed: list[tuple[int, int]] = []

    def read_on(self, sequence: Sequence) -> bool:
        """Index the next part of a text; return whether all of it is indexed."""
        n_read, n_tokens = len(self.index.tokens), sequence.tokens.size
        if n_read < n_tokens:
            tokens = sequence.tokens.view[n_read : n_read + _PIECE].tolist()
            if self.run and len(tokens) <= _LONGEST_MATCH:
                for token in tokens:
                    self.append(token)
            else:
                self.index.extend(tokens)
                self.run, self._strayed = 0, []
        return n_read + _PIECE >= n_tokens

    def look(self) -> bool:
        """Find the passage that the text follows, the one with the longest match; return whether there is one."""
        found = self.index.find()
        if found is not None and (self._strayed or found[1] >= self.run):
            self.source, self.run = found
            self._strayed = []
        self.place, self.match = self.source, 0 if self._strayed else self.run
        return self.match > 0

    def append(self, token: int) -> None:
        """The text goes on with ``token``."""
        if self.run:
            known, self.source = self.index.tokens[self.source], self.source + 1
            if token not in (known, self.replaced.get(known)):
                self._strayed.append((known, token))
                if len(self._strayed) > _MOST_STRAYED:
                    self.run, self._strayed = 0, []
            elif self._strayed:
                self.replaced.update(self._strayed)
                self.run, self._strayed = min(self.run, _LONGEST_MATCH) // _STRAYED_SHARE, []
            else:
                self.run += 1
                if token == known:
                    self.replaced.pop(known, None)
        self.index.append(token)

    def next(self, drafted: list[int]) -> ProposedToken:
        """Return what follows in the passage; a repetition continues into the drafted tokens themselves."""
        beyond = self.place - len(self.index.tokens)
        if beyond >= 0:
            return ProposedToken(drafted[beyond], _bin(self.match))
        token = self.index.tokens[self.place]
        if token in self.replaced:
            return ProposedToken(self.replaced[token], _REPLACED)
        return ProposedToken(token, _bin(self.match))


class NgramProposer(Proposer):
    """Drafts what followed the latest tokens before: in the text itself, else in texts of other requests.

    Only texts with the same salt: how much was drafted would tell what others have said.
    """

    name = "lookup"

    def __init__(self) -> None:
        super().__init__((*_LOCAL_PRIORS, *_SHARED_PRIORS, _REPLACED_PRIOR))
        self._tracks: dict[str, _Track] = {}
        # What last followed an n-gram of a salt, and its bin: the token times the number of bins, plus the bin.
        self._shared: dict[tuple[str | int, ...], int] = {}

    def begin(self, sequence: Sequence) -> None:
        """Begin to index a prompt; the rest of a long one is indexed with the next lookups."""
        track = self._tracks[sequence.id] = _Track(sequence.request.salt)
        track.read_on(sequence)

    def end(self, sequence: Sequence) -> None:
        """Add the finished text to the shared index."""
        track = self._tracks.pop(sequence.id, None)
        if track is not None:
            self.add_text(sequence.tokens.view[max(sequence.n_prompt - _SHARED_SIZE, 0) :].tolist(), track.salt)

    def clear(self) -> None:
        """Empty the shared index."""
        self._shared.clear()

    def add_text(self, tokens: list[int], salt: str = "") -> None:
        """Add a text to the shared index."""
        shared, n_bins = self._shared, len(_SHARED_PRIORS)
        for window, token in zip(_windows(tokens, _SHARED_SIZE), tokens[_SHARED_SIZE:], strict=False):
            key: tuple[str | int, ...] = (salt, *window)
            known = shared.get(key)
            shared[key] = n_bins * token + (0 if known is None else 1 if known // n_bins == token else 2)
        if len(shared) > _SHARED_LIMIT:
            keys = list(itertools.islice(shared, len(shared) - _SHARED_LIMIT // 2))
            for key in keys:
                del shared[key]

    def has_match(self, sequence: Sequence) -> bool:
        """Return whether there is a token to propose for a sequence."""
        track = self._tracks.get(sequence.id)
        return track is not None and track.read_on(sequence) and self._first(track) is not None

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain, by lookup."""
        return [self._next(chain) for chain in chains]

    def advance(self, sequence: Sequence, tokens: list[int], n_drafted_here: int) -> None:
        """Take in new tokens of a sequence; the first ``n_drafted_here`` were this proposer's own and are judged.

        If earlier tokens are not indexed yet, nothing is done: they are indexed together later.
        """
        track = self._tracks.get(sequence.id)
        if track is None or len(track.index.tokens) + len(tokens) < sequence.tokens.size:
            return
        for index, token in enumerate(tokens):
            if index >= n_drafted_here:
                guess = self._first(track)
                if guess is not None:
                    self._samples.append(AcceptanceSample(sequence.id, guess.evidence, guess.token == token))
            track.append(token)

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        track = self._tracks.get(chain.sequence.id)
        if track is None:
            return None
        if not chain.tokens:
            return self._first(track) if track.read_on(chain.sequence) else None
        if track.match:
            track.place += 1
            track.match += 1
            return track.next(chain.tokens)
        return self._from_others(track.salt, [*track.index.tokens[-_SHARED_SIZE:], *chain.tokens])

    def _first(self, track: _Track) -> ProposedToken | None:
        return track.next([]) if track.look() else self._from_others(track.salt, track.index.tokens)

    def _from_others(self, salt: str, tokens: list[int]) -> ProposedToken | None:
        known = self._shared.get((salt, *tokens[-_SHARED_SIZE:]))
        if known is None:
            return None
        token, place = divmod(known, len(_SHARED_PRIORS))
        return ProposedToken(token, _SHARED + place)


def _bin(match: int) -> int:
    for index, edge in enumerate(_MATCH_EDGES):
        if match < edge:
            return index
    return len(_MATCH_EDGES)


# The forced bytes are certain, but a model may split them into other tokens. After a right token the next one is
# likelier. Bins: the first token of a run, and the later ones.
_FIRST, _LATER = 0, 1
_PRIORS = (0.9, 0.97)


class GrammarProposer(Proposer):
    """Proposes the forced bytes, split into tokens as the tokenizer does."""

    name = "grammar"

    def __init__(self) -> None:
        super().__init__(_PRIORS)
        self._runs: dict[str, list[int]] = {}

    def end(self, sequence: Sequence) -> None:
        """Drop the run of a sequence that has ended."""
        self._runs.pop(sequence.id, None)

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next forced token of each chain; the grammar is asked once for each new chain."""
        return [self._next(chain) for chain in chains]

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        sequence, place = chain.sequence, len(chain.tokens)
        if not place:
            grammar = sequence.sampler.grammar
            self._runs[sequence.id] = grammar.forced() if grammar is not None else []
        run = self._runs.get(sequence.id, [])
        return ProposedToken(run[place], _LATER if place else _FIRST) if place < len(run) else None
