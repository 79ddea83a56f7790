"""Smaller copies over the library's routes: offered, made with news, cancelled, refused, and how they end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.client.server_process import library_command
from models.library import requests as ask
from models.quantise.progress import QuantisePhase
from tests.support.library_client import LibraryClient
from tools.model_factory.gguf_factory import Recipe, cached


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


def test_one_is_made_after_the_other_a_name_only_once_and_a_cancelled_one_leaves_nothing(
    library: LibraryClient, slow_fox: Path, models_folder: Path
) -> None:
    library.get(ask.Quantise("deep-F16", "Q4_K_M", threads=1))
    assert "being made already" in library.ask(ask.Quantise("deep-F16", "Q4_K_M")).sentence
    library.get(ask.Quantise("deep-F16", "Q8_0"))
    library.wait_for(lambda: len(library.quantisings) == 2 and library.quantisings[0].phase != QuantisePhase.QUEUED)
    assert phases(library)[1] == QuantisePhase.QUEUED
    library.wait_for(lambda: is_at_work(library))
    library.get(ask.CancelQuantise(library.quantisings[0].number))
    library.wait_for(lambda: phases(library) == ["done"])
    assert files_of(models_folder) == ["deep-F16.gguf", "deep-Q8_0.gguf"]
    assert "already" in library.ask(ask.Quantise("deep-F16", "Q8_0")).sentence


def test_a_process_that_ends_with_its_server_leaves_nothing(
    library: LibraryClient, slow_fox: Path, models_folder: Path
) -> None:
    library.get(ask.Quantise("deep-F16", "Q4_K_M", threads=1))
    library.wait_for(lambda: is_at_work(library))
    library.close()
    assert files_of(models_folder) == ["deep-F16.gguf"]


def test_a_child_that_dies_is_told_and_the_next_copy_is_made(open_library, slow_fox: Path) -> None:
    library = open_library(library_command)
    library.get(ask.Quantise("deep-F16", "Q4_K_M", threads=1))
    library.wait_for(lambda: is_at_work(library))
    for child in library.server.process.children():
        child.kill()
    library.wait_for(lambda: phases(library) == [QuantisePhase.FAILED])
    assert "Nothing of it is left" in (library.quantisings[0].problem or "")
    library.get(ask.Quantise("deep-F16", "Q4_K_M", threads=1))
    library.wait_for(lambda: phases(library) == [QuantisePhase.FAILED, QuantisePhase.DONE])
