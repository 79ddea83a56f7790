"""A model of the Hub is downloaded with what would draft for it, with the real process behind the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.formatting import figures
from models.library import requests as ask
from tools.model_factory import gguf_factory, head_factory
from tools.stand_ins.hub_server import HubServer
from ui.library.library_page import FIND, LibraryPage
from ui.library.repository_pane import RepositoryPane

REPO = "acme/bear-90M-GGUF"
MODEL, HEAD = "bear-90M-Q8_0.gguf", "eagle3-bear-90M.gguf"
N_VOCAB = 5_000  # no bundled model has so many tokens


@pytest.fixture
def sizes(hub: HubServer) -> tuple[int, int]:
    """A model with a head beside it; their bytes."""
    model = gguf_factory.cached_file(
        "bear.gguf", lambda path: gguf_factory.big_vocab_ember(path, N_VOCAB, n_layers=30)
    ).read_bytes()
    head = gguf_factory.cached_file(
        "bear-head.gguf", lambda path: head_factory.eagle_head(path, n_vocab=N_VOCAB)
    ).read_bytes()
    hub.add(REPO, {MODEL: model, HEAD: head})
    return len(model), len(head)


def opened(qtbot, page: LibraryPage, words: str, repo_id: str) -> RepositoryPane:
    page.show_tab(FIND)
    page.finder.field.setText(words)
    qtbot.waitUntil(lambda: [row.key for row in page.finder.list.rows.rows] == [repo_id])
    page.finder.list.choose(repo_id)
    pane = page.finder.pane
    qtbot.waitUntil(lambda: pane.repository is not None)
    return pane


@pytest.mark.slow
def test_a_model_comes_with_its_draft_where_that_is_ticked(
    qtbot, page: LibraryPage, models_folder: Path, sizes: tuple[int, int]
) -> None:
    n_model, n_head = sizes
    pane = opened(qtbot, page, "bear", REPO)
    assert pane.draft.isHidden()
    qtbot.waitUntil(pane.draft.isVisible)
    assert pane.draft.text().startswith(f"With its draft ({figures.size(n_head)}), about 1.")
    assert f"{REPO}:{HEAD} (EAGLE-3 head, " in pane.draft.toolTip()
    assert not pane.draft.isChecked()
    assert pane.download.text() == f"Download  Q8_0  ({figures.size(n_model)})"
    pane.draft.click()
    assert pane.download.text() == f"Download  Q8_0 and its draft  ({figures.size(n_model + n_head)})"
    pane.list.choose(HEAD)
    assert pane.draft.isHidden(), "nothing drafts for a head"
    pane.list.choose(MODEL)
    pane.download.click()
    qtbot.waitUntil(lambda: [one.phase for one in page.window().link.downloads] == ["done", "done"])
    assert [one.wanted for one in page.window().link.downloads] == [MODEL, HEAD], "the model first"
    assert {path.name for path in (models_folder / REPO).iterdir()} == {MODEL, HEAD}
    assert pane.draft.isHidden()


def test_nothing_is_offered_for_a_model_that_nothing_makes_faster(qtbot, page: LibraryPage) -> None:
    asked, answers = [], list[object]()
    page.finder.pane.draft_wanted.connect(lambda *what: asked.append(what))
    pane = opened(qtbot, page, "fox", "acme/fox-GGUF")
    qtbot.waitUntil(lambda: ("acme/fox-GGUF", "fox-Q8_0.gguf") in asked)
    page.window().link.ask(ask.ShowHub(), answers.append)  # answered behind what is asked for the pane
    qtbot.waitUntil(lambda: answers != [])
    assert pane.draft.isHidden()
