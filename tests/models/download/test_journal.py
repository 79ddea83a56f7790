"""The journal survives being torn anywhere, and what the disk spoilt is not believed."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from models.download.journal import Journal, JournalEntry, JournalSubject, check_records, read_records
from models.download.pieces import PieceMap

SUBJECT = JournalSubject("sha256:" + "1" * 64, 95, 10)


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
    assert len((tmp_path / "journal").read_bytes().splitlines()) == 5


def test_another_subject_begins_anew(tmp_path):
    begun(tmp_path)[1].close()
    assert read_records(tmp_path / "journal", JournalSubject("sha256:" + "2" * 64, 95, 10)) == {}
    assert read_records(tmp_path / "nothing", SUBJECT) == {}


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
    journal = Journal(folder / "journal", SUBJECT)
    journal.records = read_records(folder / "journal", SUBJECT)
    with open(folder / "journal", "ab") as file:
        journal._file = file.fileno()
        check_records(folder / "part", journal, pieces)
    assert all(n == 0 or n in (whole.get(i, JournalEntry(0, "")).n_bytes, 2) for i, n in enumerate(pieces.have))


def test_what_the_disk_spoilt_is_fetched_again(tmp_path):
    part, journal = begun(tmp_path)
    raw = bytearray(part.read_bytes())
    raw[31] ^= 1
    part.write_bytes(raw)
    pieces = PieceMap(95, 10)
    check_records(part, journal, pieces)
    journal.close()
    assert pieces.have == [10, 0, 0, 0, 0, 4, 0, 0, 0, 5]
    assert read_records(tmp_path / "journal", SUBJECT)[3].n_bytes == 0


def test_without_the_partial_file_nothing_is_there(tmp_path):
    part, journal = begun(tmp_path)
    part.unlink()
    pieces = PieceMap(95, 10)
    check_records(part, journal, pieces)
    journal.close()
    assert pieces.n_received == 0
