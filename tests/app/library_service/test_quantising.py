"""Smaller copies over the library's routes: offered, made with news, cancelled, refused, and how they end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.client.server_process import library_command
from models.library import requests as ask
from models.quantise.progress import QuantisePhase
from tests.support.library_client import LibraryClient
from tests.support.quantised import ember_f16
from tools.model_factory.gguf_factory import Recipe, cached


@pytest.fixture
def fox(models_folder: Path) -> Path:
    """An unquantised model."""
    models_folder.mkdir(parents=True)
    return Path(shutil.copy(ember_f16(), models_folder / "fox-F16.gguf"))


@pytest.fixture
def slow_fox(models_folder: Path) -> Path:
    """One that takes a while: so many layers that it can be caught in the middle."""
    models_folder.mkdir(parents=True)
    deep = cached(Recipe(tensor_type="F16", n_layers=48))
    return Path(shutil.copy(deep, models_folder / "deep-F16.gguf"))


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock", ".json"))


def phases(library: LibraryClient) -> list[str]:
    return [one.phase for one in library.quantisings]


def is_at_work(library: LibraryClient) -> bool:
    return any(one.phase is QuantisePhase.QUANTISING and one.progress.n_done > 0 for one in library.quantisings)


def test_copies_are_offered_best_first_with_size_quality_and_room(library: LibraryClient, fox: Path) -> None:
    offer = library.get(ask.OfferQuantise("fox-F16"))
    assert (offer.source_type, offer.is_original, offer.problem) == ("F16", True, None)
    assert [target.type for target in offer.targets][:2] == ["Q8_0", "Q6_K"]
    assert [target.n_bytes for target in offer.targets[:2]] == sorted(
        (target.n_bytes for target in offer.targets[:2]), reverse=True
    )
    assert all(target.n_bytes < offer.n_bytes and target.quality for target in offer.targets)
    assert [target.name for target in offer.targets if target.is_usual] == ["fox-Q4_K_M"]
    assert offer.n_free > 0


def test_what_is_quantised_already_must_be_allowed(library: LibraryClient, models_folder: Path) -> None:
    offer = library.get(ask.OfferQuantise("ember-q8_0"))
    assert not offer.is_original
    assert offer.targets[0].type == "Q6_K"
    trouble = library.ask(ask.Quantise("ember-q8_0", "Q4_0"))
    assert "quantised already" in trouble.sentence
    assert "--" not in trouble.sentence
    library.get(ask.Quantise("ember-q8_0", "Q4_0", may_requantise=True))
    library.wait_for(lambda: phases(library) == ["done"])
    assert files_of(models_folder) == ["ember-Q4_0.gguf"]


def test_a_copy_is_made_with_news_and_listed(library: LibraryClient, fox: Path, models_folder: Path) -> None:
    begun = library.get(ask.Quantise("fox-F16", "Q4_0", output="小狐"))
    assert (begun.source, begun.name, begun.type) == ("fox-F16", "小狐", "Q4_0")
    library.wait_for(lambda: phases(library) == ["done"])
    (done,) = library.quantisings
    made = models_folder / "quantised" / "小狐.gguf"
    assert done.n_bytes == made.stat().st_size < 0.4 * fox.stat().st_size
    offered = next(one for one in library.get(ask.OfferQuantise("fox-F16")).targets if one.type == "Q4_0")
    assert offered.n_bytes == pytest.approx(done.n_bytes, rel=0.15)
    library.wait_for(lambda: library.heard("models"))
    assert "小狐" in [row.name for row in library.get(ask.ListModels()).rows]
    library.get(ask.CancelQuantise(done.number))
    library.wait_for(lambda: library.quantisings == ())
    assert made.exists()


def test_one_is_made_after_the_other_a_name_only_once_and_a_cancelled_one_leaves_nothing(
    library: LibraryClient, slow_fox: Path, models_folder: Path
) -> None:
    library.get(ask.Quantise("deep-F16", "Q4_K_M"))
    assert "being made already" in library.ask(ask.Quantise("deep-F16", "Q4_K_M")).sentence
    library.get(ask.Quantise("deep-F16", "Q8_0"))
    library.wait_for(lambda: len(library.quantisings) == 2 and library.quantisings[0].phase != QuantisePhase.QUEUED)
    assert phases(library)[1] == QuantisePhase.QUEUED
    library.wait_for(lambda: is_at_work(library))
    library.get(ask.CancelQuantise(library.quantisings[0].number))
    library.wait_for(lambda: phases(library) == ["done"])
    assert files_of(models_folder) == ["deep-F16.gguf", "deep-Q8_0.gguf"]
    assert "already" in library.ask(ask.Quantise("deep-F16", "Q8_0")).sentence


def test_it_ends_with_the_server_and_leaves_nothing(
    library: LibraryClient, slow_fox: Path, models_folder: Path
) -> None:
    library.get(ask.Quantise("deep-F16", "Q4_K_M"))
    library.wait_for(lambda: is_at_work(library))
    library.close()
    assert files_of(models_folder) == ["deep-F16.gguf"]


def test_what_a_killed_process_left_the_next_one_removes(
    library: LibraryClient, slow_fox: Path, models_folder: Path
) -> None:
    library.get(ask.Quantise("deep-F16", "Q4_K_M"))
    library.wait_for(lambda: is_at_work(library))
    library.server.process.kill()
    library.wait_for(lambda: library.heard("returned"))
    assert library.get(ask.ListQuantisings()) == library.quantisings == ()
    assert files_of(models_folder) == ["deep-F16.gguf"]


def test_a_child_that_dies_is_told_and_the_next_copy_is_made(open_library, slow_fox: Path) -> None:
    library = open_library(library_command)
    library.get(ask.Quantise("deep-F16", "Q4_K_M"))
    library.wait_for(lambda: is_at_work(library))
    for child in library.server.process.children():
        child.kill()
    library.wait_for(lambda: phases(library) == [QuantisePhase.FAILED])
    assert "Nothing of it is left" in (library.quantisings[0].problem or "")
    library.get(ask.Quantise("deep-F16", "Q4_K_M"))
    library.wait_for(lambda: phases(library) == [QuantisePhase.FAILED, QuantisePhase.DONE])


def test_what_cannot_be_made_is_told(library: LibraryClient, fox: Path) -> None:
    (fox.parent / "broken.gguf").write_bytes(b"no model")
    for request, words in (
        (ask.OfferQuantise("gone"), "any more"),
        (ask.Quantise("fox-F16", "Q4_0", output="../x"), "cannot be a model's name"),
        (ask.Quantise("fox-F16", "F16"), "neither smaller nor better"),
        (ask.Quantise("fox-F16", "Q9"), "no type 'Q9'"),
        (ask.Quantise("broken", "Q4_0"), "broken cannot be made smaller"),
    ):
        sentence = library.ask(request).sentence
        assert words in sentence
        assert "--" not in sentence
