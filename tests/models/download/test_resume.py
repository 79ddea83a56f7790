"""Each piece is fetched once and no connection idles; the journal survives tears, and spoilt pieces are found."""

from __future__ import annotations

import hashlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.download.resume import (
    MOST_PIECES,
    Claim,
    Journal,
    JournalEntry,
    JournalSubject,
    PieceMap,
    check_records,
    piece_bytes_for,
    read_records,
)
from models.files.errors import Stopped

SUBJECT = JournalSubject("sha256:" + "1" * 64, 95, 10)


def test_sizes_of_pieces():
    assert piece_bytes_for(0) == piece_bytes_for(4 << 30) == 1 << 20
    assert piece_bytes_for(120_000_000_000) == 32 << 20
    assert -(-120_000_000_000 // piece_bytes_for(120_000_000_000)) <= MOST_PIECES


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


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
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


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def begun(folder, content=bytes(range(95))):
    part = folder / "part"
    part.write_bytes(content)
    journal = Journal.open(folder / "journal", SUBJECT)
    for index in (0, 3, 9):
        piece = content[index * 10 : index * 10 + 10]
        journal.write(index, len(piece), sha(piece))
    journal.write(5, 2, sha(content[50:52]))
    journal.write(5, 4, sha(content[50:54]))
    return part, journal


def test_records_are_read_again_the_latest_of_each_piece(tmp_path):
    _, journal = begun(tmp_path)
    journal.close()
    records = read_records(tmp_path / "journal", SUBJECT)
    assert {index: record.n_bytes for index, record in records.items()} == {0: 10, 3: 10, 9: 5, 5: 4}
    again = Journal.open(tmp_path / "journal", SUBJECT)
    again.close()
    again.close()
    assert again.records == records
    assert read_records(tmp_path / "journal", JournalSubject("sha256:" + "2" * 64, 95, 10)) == {}
    assert read_records(tmp_path / "nothing", SUBJECT) == {}
    assert len((tmp_path / "journal").read_bytes().splitlines()) == 5


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_a_torn_or_damaged_journal_is_believed_in_part(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("torn")
    begun(folder)[1].close()
    raw = bytearray((folder / "journal").read_bytes())
    whole = read_records(folder / "journal", SUBJECT)
    del raw[data.draw(st.integers(0, len(raw))) :]
    if raw and data.draw(st.booleans()):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (folder / "journal").write_bytes(raw)
    pieces = PieceMap(95, 10)
    journal = Journal.open(folder / "journal", SUBJECT)
    check_records(folder / "part", journal, pieces)
    journal.close()
    assert all(n == 0 or n in (whole.get(i, JournalEntry(0, "")).n_bytes, 2) for i, n in enumerate(pieces.have))


def test_comparing_what_is_there_can_be_stopped(tmp_path):
    part, journal = begun(tmp_path)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        check_records(part, journal, PieceMap(95, 10), stop)
    journal.close()
    assert len(read_records(tmp_path / "journal", SUBJECT)) == 4


def test_what_the_disk_spoilt_is_fetched_again(tmp_path):
    part, journal = begun(tmp_path)
    raw = bytearray(part.read_bytes())
    raw[31] ^= 1
    part.write_bytes(raw)
    pieces = PieceMap(95, 10)
    check_records(part, journal, pieces)
    assert pieces.have == [10, 0, 0, 0, 0, 4, 0, 0, 0, 5]
    assert read_records(tmp_path / "journal", SUBJECT)[3].n_bytes == 0
    part.unlink()
    pieces = PieceMap(95, 10)
    check_records(part, journal, pieces)
    journal.close()
    assert pieces.n_received == 0, "without the partial file nothing is there"
