from __future__ import annotations

from app.jobs.batch.batch_run import SeenIds


def test_an_id_is_known_with_its_first_line() -> None:
    seen = SeenIds()
    assert [seen.add(text, number) for number, text in enumerate(("a", "b", "a", "a"), 1)] == [None, None, 1, 1]
    assert seen.add("\ud800", 9) is None


def test_many_ids_stay_known() -> None:
    seen = SeenIds()
    assert all(seen.add(f"request-{number}", number) is None for number in range(1, 20_000))
    assert all(seen.add(f"request-{number}", 0) == number for number in range(1, 20_000))
