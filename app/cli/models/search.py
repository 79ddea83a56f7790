"""``slipstream models search`` and what ``models show`` says about repositories of the Hub."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.terminal.text import say, say_json, table
from models.formatting.figures import how_many, parameters, size
from models.formatting.program import PROGRAM

if TYPE_CHECKING:
    from app.fit_reports.fit_reports import CurrentMachine
    from models.facts.model_facts import ModelFacts
    from models.hub.client import Hub
    from models.hub.repository import HubModel, Repository


class SortOrder(StrEnum):
    """The order of what was found."""

    DOWNLOADS = "downloads"
    LIKES = "likes"
    NEWEST = "newest"
    UPDATED = "updated"
    TRENDING = "trending"


def search(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]...", help="Words of the name.", show_default=False)
    ] = None,
    sort: Annotated[SortOrder, typer.Option(help="What comes first.")] = SortOrder.DOWNLOADS,
    limit: Annotated[int, typer.Option(metavar="N", help="Rows at most.", min=1, max=200)] = 20,
    author: Annotated[str | None, typer.Option(metavar="MAKER", help="Only of this maker.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Search the Hugging Face Hub for models; without words, list models to begin with.

    The list to begin with is part of Slipstream and needs no network; it is judged for this machine.
    """
    if not words and author is None:
        from app.cli.models.suggested import print_suggestions

        print_suggestions(as_json)
        return
    from app.library.hub_access import hub
    from app.library.trouble import as_library_errors
    from models.hub.client import SORTS, Search

    with as_library_errors():
        found = hub().search(Search(" ".join(words or ()), author, SORTS[sort.value], limit))
    if as_json:
        say_json([asdict(row) for row in found])
        return
    rows = [
        [
            row.repo_id,
            parameters(row.n_params),
            row.architecture or "",
            how_many(row.downloads, "download"),
            how_many(row.likes, "like"),
            row.modified.date().isoformat() if row.modified else "",
            "" if row.access == "open" else row.access.value,
            row.licence or "",
        ]
        for row in found
    ]
    print(table(rows) if rows else "Nothing was found. Try fewer or other words.")
    if rows:
        print(
            f"\n`{PROGRAM} models show NAME` lists the sizes of one, `{PROGRAM} models pull NAME:Q4_K_M` downloads it."
        )


def show_remote(
    name: str,
    as_json: bool,
    look: Callable[[], CurrentMachine],
    n_ctx: int | None,
    draft: ModelFacts | None,
) -> None:
    """Describe a repository, or with ``REPO:QUANT`` one of its models by its header.

    It is judged for the machine that ``look`` returns.
    """
    from app.fit_reports.fit_reports import as_fields, as_lines, report_remote
    from app.library.hub_access import hub
    from app.library.trouble import as_library_errors
    from models.download.model_download import choose_one
    from models.hub.remote_source import remote_facts
    from models.hub.repository import parsed_name

    repo_id, wanted, revision = parsed_name(name)
    with as_library_errors():
        client = hub()
        repository = client.repository(repo_id, revision)
        if not wanted:
            advice = _advice(client, repository, look, n_ctx)
            shown = {**_repository(repository), "recommendation": advice}
            say_json(shown) if as_json else say(f"{_describe(repository)}\n\n{advice['sentence']}")
            return
        model = choose_one(repository, wanted)
        known = remote_facts(client, repository, model)
    facts = _facts(model, known)
    judgement = report_remote(known, look(), n_ctx=n_ctx, draft=draft)
    if as_json:
        say_json({"repository": repository.repo_id, **facts, "judgement": as_fields(judgement)})
        return
    rows = [[_LABELS.get(name, name), _shown(name, value)] for name, value in facts.items() if value is not None]
    print(table([*rows, *as_lines(judgement)]))


def _advice(
    client: Hub, repository: Repository, look: Callable[[], CurrentMachine], n_ctx: int | None
) -> dict[str, Any]:
    """Which of the models to take here; if no header can be read, the reason."""
    from app.cli.terminal.errors import typed
    from app.fit_reports.repository_reports import RepositoryReports
    from app.library.trouble import trouble_of
    from models.gguf.errors import GgufError
    from models.hub.errors import HubError

    try:
        found = RepositoryReports(client, repository, look, n_ctx).recommended()
    except (HubError, GgufError) as error:
        return {
            "name": None,
            "quantisation": None,
            "sentence": f"No advice on what to take: {typed(trouble_of(error))}",
        }
    if found is None or found.candidate is None:
        sentence = found.sentence if found is not None else "There is no whole model here to judge."
        return {"name": None, "quantisation": None, "sentence": sentence}
    chosen = found.candidate
    return {"name": chosen.name, "quantisation": chosen.quantisation, "sentence": f"Take {found.sentence}"}


def _describe(repository: Repository) -> str:
    facts = [
        ["repository", repository.repo_id],
        ["made from", ", ".join(repository.base_models)],
        ["architecture", repository.architecture or ""],
        ["parameters", parameters(repository.n_params)],
        ["context", f"{repository.n_ctx_train:,} tokens" if repository.n_ctx_train else ""],
        ["licence", repository.licence or ""],
        ["access", repository.access.value],
        ["downloads", f"{repository.downloads:,}"],
        ["updated", repository.modified.date().isoformat() if repository.modified else ""],
    ]
    items = [[item.name, item.quantisation, size(item.n_bytes), _remark(item)] for item in repository.models]
    told = f"{repository.asked_as} has been renamed to {repository.repo_id}.\n" if repository.was_renamed else ""
    listed = table(items) or "No GGUF files."
    return f"{told}{table([fact for fact in facts if fact[1]])}\n\n{listed}"


def _remark(item: HubModel) -> str:
    what = "" if item.role == "model" else f"{item.role.value}, beside a model"
    if item.role == "other":
        what = "no model"
    parts = f"{len(item.files)} files" if len(item.files) > 1 else ""
    missing = f"{item.missing} parts missing" if item.missing else ""
    return ", ".join(text for text in (what, parts, missing) if text)


def _repository(repository: Repository) -> dict[str, Any]:
    models = [{**asdict(item), "n_bytes": item.n_bytes} for item in repository.models]
    return {**asdict(repository), "was_renamed": repository.was_renamed, "models": models}


def _facts(model: HubModel, facts: ModelFacts) -> dict[str, Any]:
    return {
        "name": model.name,
        "architecture": facts.architecture,
        "quantisation": facts.quantisation,
        "n_params": facts.n_params,
        "n_active_params": facts.n_active_params,
        "n_bytes": model.n_bytes,
        "weight_bytes": facts.weight_bytes,
        "bytes_per_token": facts.active_bytes_per_token,
        "kv_bytes_per_token": facts.kv_bytes_per_token(),
        "n_ctx_train": facts.n_ctx_train,
        "n_layers": facts.n_layers,
        "n_experts": facts.n_experts or None,
        "n_experts_used": facts.n_experts_used or None,
        "n_mtp_layers": facts.n_mtp_layers or None,
        "tokenizer": facts.tokenizer,
        "n_vocab": facts.n_vocab,
        "has_chat_template": facts.has_chat_template,
        "licence": facts.licence,
        "problem": facts.problem,
    }


_LABELS = {
    "n_params": "parameters",
    "n_active_params": "active for a token",
    "n_bytes": "size",
    "weight_bytes": "weights",
    "bytes_per_token": "read for a token",
    "kv_bytes_per_token": "cached for a token",
    "n_ctx_train": "context",
    "n_layers": "layers",
    "n_experts": "experts",
    "n_experts_used": "experts of a token",
    "n_mtp_layers": "prediction heads",
    "n_vocab": "vocabulary",
    "has_chat_template": "chat template",
}


def _shown(name: str, value: Any) -> str:
    """A fact as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if "bytes" in name:
        return size(value)
    if name.endswith("params"):
        return parameters(value)
    return f"{value:,} tokens" if name == "n_ctx_train" else f"{value:,}" if isinstance(value, int) else str(value)
