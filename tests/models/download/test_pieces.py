"""Pieces are handed to connections so that each is fetched once and nobody idles."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from models.download.pieces import MOST_PIECES, Claim, PieceMap, piece_bytes_for


def test_sizes_of_pieces():
    assert piece_bytes_for(0) == piece_bytes_for(4 << 30) == 1 << 20
    assert piece_bytes_for(120_000_000_000) == 32 << 20
    assert -(-120_000_000_000 // piece_bytes_for(120_000_000_000)) <= MOST_PIECES


def test_an_empty_file_is_complete():
    pieces = PieceMap(0, 10)
    assert pieces.is_complete
    assert pieces.claim(4) is None


def test_connections_share_evenly_and_then_help_the_slowest():
    pieces = PieceMap(95, 10)
    claims = [pieces.claim(4) for _ in range(4)]
    assert [(claim.at, claim.end) for claim in claims if claim] == [(0, 3), (3, 5), (5, 7), (7, 8)]
    last = [pieces.claim(4) for _ in range(2)]
    assert [(claim.at, claim.end) for claim in last if claim] == [(8, 9), (9, 10)]
    helper = pieces.claim(4)
    assert (helper and (helper.at, helper.end)) == (2, 3)
    assert claims[0] is not None
    assert claims[0].end == 2


def test_a_run_begins_with_the_piece_that_is_there_in_part():
    pieces = PieceMap(100, 10)
    pieces.have[:5] = [10, 10, 0, 4, 0]
    claims = [pieces.claim(1) for _ in range(2)]
    assert [(claim.at, claim.end) for claim in claims if claim] == [(3, 10), (2, 3)]


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 200), st.integers(1, 20), st.integers(1, 6), st.randoms(use_true_random=False))
def test_every_byte_is_fetched_once_whatever_fails(n_bytes, piece_bytes, n_connections, random):
    pieces = PieceMap(n_bytes, piece_bytes)
    claims: list[Claim] = []
    n_fetched = 0
    for _ in range(10_000):
        if pieces.is_complete:
            break
        if len(claims) < n_connections and (claim := pieces.claim(n_connections)) is not None:
            claims.append(claim)
        claim = random.choice(claims)
        n = random.randint(1, pieces.length(claim.at) - pieces.have[claim.at])
        pieces.have[claim.at] += n
        n_fetched += n
        if pieces.is_whole(claim.at):
            claim.at += 1
        held = [index for other in claims for index in range(other.at, other.end)]
        assert len(held) == len(set(held))
        if claim.at == claim.end or random.random() < 0.2:
            claims.remove(claim)
            pieces.give_back(claim)
    assert pieces.is_complete
    assert n_fetched == pieces.n_received == n_bytes
