"""``slipstream models settings``: what is set for one model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.text import say, table
from app.environment.exit_codes import ExitCode

if TYPE_CHECKING:
    from core.values.model_settings import ModelSettings

_ALL = "all"


def settings(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, title or path of a model.")],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set this; may be given more than once.")
    ] = None,
    resets: Annotated[
        list[str] | None,
        typer.Option("--reset", metavar="KEY", help="As recommended again; all resets everything."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show or change the settings of a model.

    They hold wherever the model is loaded or answers, unless a command's option or a request says otherwise. A model
    that is loaded takes a changed context, kv_type, gpu_layers, threads and draft when it is loaded next.
    """
    from app.environment.paths import model_settings_file
    from app.library.find_model import find_draft, find_model
    from app.library.hub_access import LibraryError
    from app.pairing.decision import names_no_model
    from app.settings.model_settings_store import ModelSettingsStore
    from core.values.model_settings import BadSetting
    from models.files.json_store import StoreRefused

    entry = find_model(name)
    store = ModelSettingsStore(model_settings_file())
    try:
        if changes or resets:
            texts = _pairs(changes or [])
            if "draft" in texts and not names_no_model(entry, texts["draft"]):
                draft = find_draft(texts["draft"])
                # A file outside of the folders is not found by its name.
                texts["draft"] = str(draft.path) if texts["draft"].lower().endswith(".gguf") else draft.name
            found = store.change(entry.path, entry.name, lambda old: _changed(old, texts, resets or []))
        else:
            found = store.of(entry.path)
    except BadSetting as error:
        raise LibraryError(error.message, ExitCode.USAGE) from error
    except StoreRefused as error:
        raise LibraryError(str(error), ExitCode.ERROR) from error
    except OSError as error:
        raise LibraryError(f"{entry.path} cannot be read: {error.strerror}.", ExitCode.MODEL) from error
    _print(entry.name, found, as_json)


def _pairs(changes: list[str]) -> dict[str, str]:
    from core.values.model_settings import BadSetting, setting_name

    texts = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise BadSetting(f"{change[:40]!r} sets nothing: write KEY=VALUE, as in temperature=0.6.")
        texts[setting_name(key)] = value
    return texts


def _changed(old: ModelSettings, texts: dict[str, str], resets: list[str]) -> ModelSettings:
    from core.values.model_settings import ModelSettings

    kept = ModelSettings() if _ALL in resets else old.without(tuple(resets))
    return kept.with_texts(texts)


def _print(name: str, found: ModelSettings, as_json: bool) -> None:
    from core.values.model_settings import NAMES, recommended

    if as_json:
        print(json.dumps({"name": name, "settings": found.given}, ensure_ascii=False))
        return
    rows = [
        [key, str(found.given[key]) if key in found.given else "-", f"recommended: {recommended(key)}"] for key in NAMES
    ]
    say(f"{name}\n\n{table(rows)}")
