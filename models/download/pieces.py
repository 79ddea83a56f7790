"""Which pieces of a file are there, and which connection fetches which next. Pure: no file, no thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SMALLEST_PIECE, MOST_PIECES = 1 << 20, 4096


def piece_bytes_for(n_bytes: int) -> int:
    """A power of two that makes at most MOST_PIECES pieces of a file."""
    size = SMALLEST_PIECE
    while n_bytes > size * MOST_PIECES:
        size *= 2
    return size


@dataclass(slots=True, eq=False)
class Claim:
    """Pieces ``at`` to ``end`` (exclusive) that one connection fetches in order. Others may take some from the end."""

    at: int
    end: int


class PieceMap:
    """A file in pieces. ``have[i]`` counts the bytes of piece i that are there, from its start."""

    def __init__(self, n_bytes: int, piece_bytes: int) -> None:
        self.n_bytes, self.piece_bytes = n_bytes, piece_bytes
        self.have = [0] * -(-n_bytes // piece_bytes)
        self._claims: list[Claim] = []

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return len(self.have)

    @property
    def n_received(self) -> int:
        """Bytes that are there."""
        return sum(self.have)

    @property
    def is_complete(self) -> bool:
        """Whether every byte is there."""
        return all(self.is_whole(index) for index in range(self.n_pieces))

    def start(self, index: int) -> int:
        """Where a piece begins; the file's end for the index after the last."""
        return min(index * self.piece_bytes, self.n_bytes)

    def length(self, index: int) -> int:
        """Bytes of a piece: all the same but the last."""
        return self.start(index + 1) - self.start(index)

    def is_whole(self, index: int) -> bool:
        """Whether a piece is there."""
        return self.have[index] == self.length(index)

    def claim(self, n_connections: int) -> Claim | None:
        """Pieces for a connection: its share of the longest run that nobody fetches, else half of another's rest."""
        runs = list(self._free_runs())
        if runs:
            longest = max(runs, key=lambda run: run.end - run.at)
            n_free = sum(run.end - run.at for run in runs)
            longest.end = min(longest.end, longest.at + max(1, -(-n_free // n_connections)))
            return self._hold(longest)
        slowest = max(self._claims, key=lambda claim: claim.end - claim.at, default=None)
        if slowest is None or slowest.end - slowest.at < 2:
            return None
        middle = slowest.at + (slowest.end - slowest.at + 1) // 2
        taken = Claim(middle, slowest.end)
        slowest.end = middle
        return self._hold(taken)

    def give_back(self, claim: Claim) -> None:
        """The connection no longer fetches these."""
        self._claims.remove(claim)

    def _hold(self, claim: Claim) -> Claim:
        self._claims.append(claim)
        return claim

    def _free_runs(self) -> Iterator[Claim]:
        """Runs of pieces that are missing and not claimed; only the first of a run may be there in part."""
        claimed = {index for claim in self._claims for index in range(claim.at, claim.end)}
        run: Claim | None = None
        for index in range(self.n_pieces):
            is_free = not self.is_whole(index) and index not in claimed
            if run is not None and (not is_free or self.have[index]):
                yield run
                run = None
            if is_free:
                run = run or Claim(index, index)
                run.end = index + 1
        if run is not None:
            yield run
