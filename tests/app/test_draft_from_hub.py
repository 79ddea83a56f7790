"""From the Hub to drafted tokens: what comes with a model is chosen by itself, drafts, and changes no text."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.cli import main as cli
from app.environment.exit_codes import ExitCode
from app.library.find_model import catalog, find_model
from app.pairing.service import draft_for
from app.settings.server_settings import USUAL_ENGINE, ServerSettings
from core.engine.engine import Engine
from core.values.messages import Ended
from core.values.request import SamplingParams
from tests.support.engines import complete, open_engine
from tests.support.heads import following
from tests.support.near_ties import GREEDY_WITH_LOGPROBS as GREEDY
from tests.support.near_ties import greedy_tokens
from tests.support.prompts import SURE
from tools.model_factory import gguf_factory, head_factory

REPO = "acme/fox-90M-GGUF"
# A vocabulary that no bundled model has, so that nothing here can draft for it.
N_VOCAB = 5_000
COUNTING = tuple(range(500, 520))


def pull(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Download the model with its draft."""
    assert cli.main(["models", "pull", f"{REPO}:Q8_0", "--with-draft", "--json"]) == ExitCode.OK
    return dict(json.loads(capsys.readouterr().out))


def paired(name: str) -> AbstractContextManager[Engine]:
    """The model loaded with what a server would choose for it, and nothing else that drafts."""
    models, settings = (
        catalog(),
        ServerSettings(engine=replace(USUAL_ENGINE, n_slots=1, n_ctx=512, speculation="draft")),
    )
    entry = find_model(name, models)
    draft = draft_for(entry, models, settings)
    return open_engine(
        entry.path, n_slots=1, n_ctx=512, speculation="draft", draft_depth=3,
        draft_path=str(draft.path) if draft.path is not None else None, uses_heads=draft.uses_heads,
    )  # fmt: skip


def plain(path: Path) -> AbstractContextManager[Engine]:
    return open_engine(path, n_slots=1, n_ctx=512, speculation="off")


def drafted(engine: Engine, prompt: str | tuple[int, ...], sampling: SamplingParams) -> tuple[str, Ended]:
    text, ended, _ = complete(engine, prompt, max_tokens=40, sampling=sampling)
    assert ended.receipt.n_drafted > 0
    return text, ended


@pytest.mark.slow
def test_a_head_beside_the_model_drafts_for_it(home, hub_server, tmp_path, capsys):
    model = gguf_factory.big_vocab_ember(tmp_path / "m.gguf", N_VOCAB, n_layers=30)
    with plain(model) as engine:
        expected, _, ledger = complete(engine, SURE, max_tokens=40, sampling=GREEDY)
        said = [token for token, _ in greedy_tokens(ledger, "only")]
        told = [*engine.vocab.tokenize(SURE).tolist(), *said]
    head = head_factory.eagle_head(tmp_path / "h.gguf", "table", following([told], 2), n_vocab=N_VOCAB)
    hub_server.add(REPO, {"fox-90M-Q8_0.gguf": model.read_bytes(), "eagle3-fox-90M.gguf": head.read_bytes()})
    pulled = pull(capsys)
    assert pulled["draft"]["name"] == "eagle3-fox-90M"
    with paired("fox-90M-Q8_0") as engine:
        text, ended = drafted(engine, SURE, GREEDY)
    assert text == expected
    assert 0 < ended.receipt.n_accepted <= ended.receipt.n_drafted


def test_heads_in_the_file_draft_and_nothing_else_is_downloaded(home, hub_server, capsys):
    model = head_factory.cached_mtp_counter(16)
    hub_server.add(REPO, {"fox-90M-Q8_0.gguf": model.read_bytes()})
    hub_server.add("acme/fox-2M-GGUF", {"fox-2M-Q8_0.gguf": gguf_factory.EMBER_DRAFT.read_bytes()})
    assert pull(capsys)["draft"] is None
    assert cli.main(["models", "pair", "fox-90M-Q8_0", "--use", "mtp"]) == ExitCode.OK
    endless = SamplingParams(temperature=0, ignore_eos=True)
    with plain(model) as engine:
        expected, _, _ = complete(engine, COUNTING, max_tokens=40, sampling=endless)
    with paired("fox-90M-Q8_0") as engine:
        text, ended = drafted(engine, COUNTING, endless)
    assert text == expected
    assert ended.receipt.n_accepted > 0
