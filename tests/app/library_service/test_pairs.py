"""Judging, pairing and testing the models here over its routes, and what happens to files behind our back."""

from __future__ import annotations

import shutil
from pathlib import Path

from core.machine.known_machine import runs_key
from models.catalog.catalog import STARTER_FOLDER
from models.estimate.speed.runs import ModelRun, add_runs
from models.facts.model_facts import read_model
from models.formatting.figures import expected_speed
from models.formatting.json_values import value_of
from models.library import requests as ask
from models.library.values import ModelRow, RowReport
from tests.support.library_client import LibraryClient
from tools.model_factory.gguf_factory import Recipe, cached
from tools.stand_ins.hub_server import HubServer
from tools.stand_ins.probed_machine import remember_probe

EMBER, DRAFT = "ember-q8_0", "ember-draft-q8_0"
SMALL = STARTER_FOLDER / "ember-draft-q8_0.gguf"
REPO = "acme/fox-GGUF"


def rows(library: LibraryClient) -> dict[str, ModelRow]:
    return {row.name: row for row in library.get(ask.ListModels()).rows}


def judged(library: LibraryClient) -> dict[str, RowReport]:
    told = (news["value"] for news in library.news if news["news"] == "judged")
    return {row.name: row for rows in told for row in value_of(tuple[RowReport, ...], rows)}


def test_rows_come_first_and_are_judged_behind_the_list_but_broken_ones_never(
    library: LibraryClient, models_folder: Path
) -> None:
    models_folder.mkdir(parents=True)
    (models_folder / "broken.gguf").write_bytes(b"no model")
    assert rows(library)[EMBER].partners == ()
    library.wait_for(lambda: {EMBER, DRAFT} <= judged(library).keys())
    assert judged(library)[EMBER].partners == (DRAFT,)
    again = rows(library)
    assert again[EMBER].partners == (DRAFT,)
    assert "broken" not in judged(library)
    assert again["broken"].problem is not None


def test_what_a_model_reached_is_the_same_in_the_list_and_beside_it(
    library: LibraryClient, models_folder: Path
) -> None:
    assert library.get(ask.GetModelFit(DRAFT)).fit.measured is None
    run = ModelRun(DRAFT, read_model(SMALL).weight_bytes, "", "", {"CPU: layer": 1.0}, 0.01, 98.7, 9, 64, 0, 0, 1.0)
    add_runs(models_folder.parents[1] / "cache", runs_key(), [run])
    assert rows(library)[DRAFT].measured_rate == 98.7
    found = library.get(ask.GetModelFit(DRAFT)).fit.measured
    assert found is not None
    assert found.rate == 98.7


def test_a_repository_has_a_recommended_model_with_the_speeds_that_its_card_shows(
    library: LibraryClient, hub: HubServer, models_folder: Path
) -> None:
    remember_probe(models_folder.parents[1] / "cache")
    # The header of one of the three smallest tells about all at first.
    kinds = {"Q4_0": "Q4_0", "Q4_1": "Q4_0", "Q5_0": "Q4_0", "Q8_0": "Q8_0", "F16": "F16"}
    hub.add(REPO, {f"fox-{name}.gguf": cached(Recipe(8, kind)).read_bytes() for name, kind in kinds.items()})
    found = library.get(ask.Recommend(REPO))
    assert found.name == "fox-Q8_0"
    card = library.get(ask.GetRemoteFit(REPO, "fox-Q8_0.gguf"))
    speed = card.fit.speed
    empty, full = expected_speed(speed.empty), expected_speed(speed.full)
    speeds = f"{empty} here, {full} after {speed.n_ctx:,} tokens."
    assert found.sentence == f"Q8_0, the best quality that fits well and is quick enough: {speeds}"
    hub.repos[REPO].files["fox-Q8_0.gguf"] = SMALL.read_bytes()[:200_000]
    library.get(ask.ShowRepository(REPO))
    assert library.get(ask.Recommend(REPO)).name == "fox-Q5_0", "broken ones are seen by their own headers"
    hub.add("acme/none", {"README.md": b"Nothing."})
    assert library.get(ask.Recommend("acme/none")).name is None


def test_files_that_are_changed_moved_or_gone_are_told(
    library: LibraryClient, hub: HubServer, models_folder: Path
) -> None:
    hub.add(REPO, {"fox-Q8_0.gguf": SMALL.read_bytes()})
    library.get(ask.StartDownload(REPO, "Q8_0"))
    library.wait_for(lambda: [download.phase for download in library.downloads] == ["done"])
    place = models_folder / REPO / "fox-Q8_0.gguf"

    def notices() -> tuple:
        return library.get(ask.ListModels()).notices

    assert notices() == ()
    place.rename(models_folder / "moved.gguf")
    (moved,) = notices()
    assert "was moved" in moved.sentence
    assert rows(library)["moved"].is_verified
    library.get(ask.DismissNotice(moved.path))
    assert notices() == ()
    assert rows(library)["moved"].mending == ""
    shutil.copy(STARTER_FOLDER / "ember-q8_0.gguf", models_folder / "moved.gguf")
    row = rows(library)["moved"]
    assert (row.has_changed, row.is_verified) == (True, False)
    assert f"It was moved, so a new copy comes to {place.parent}" in row.mending
    (models_folder / "moved.gguf").unlink()
    (gone,) = notices()
    assert "deleted or moved away" in gone.sentence
    assert (gone.repo_id, gone.wanted) == (REPO, "fox-Q8_0.gguf")
    library.get(ask.DismissNotice(gone.path))
    assert notices() == ()
