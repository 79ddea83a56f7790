"""``slipstream models settings``: what is set for one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.text import say, say_json, table
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
        list[str] | None, typer.Option("--reset", metavar="KEY", help="As recommended again; all resets everything.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show or change the settings of a model.

    They hold wherever the model is loaded or answers, unless a command's option or a request says otherwise. A model
    that is loaded takes a changed ctx, kv_type, gpu_layers, threads, draft and worker when it is loaded next.
    """
    from app.cli.models.library import answer, asked_as
    from app.library.errors import LibraryError
    from app.library.find_model import catalog, find_draft, find_model
    from app.pairing.decision import names_no_model
    from app.settings.model_settings_store import settings_of
    from core.values.model_settings import BadSetting
    from models.library.requests import ChangeSettings
    from models.library.values import SettingText

    models = catalog()
    entry = find_model(name, models)
    if changes or resets:
        try:
            texts = _texts(changes or [], resets or [])
        except BadSetting as error:
            raise LibraryError(error.message, ExitCode.USAGE) from error
        named = texts.get("draft")
        if named and not names_no_model(entry, named):
            draft = find_draft(named, models)
            # A file outside of the folders is not found by its name.
            texts["draft"] = str(draft.path.absolute()) if named.lower().endswith(".gguf") else draft.name
        asked = tuple(SettingText(key, text) for key, text in texts.items())
        sheet = answer(ChangeSettings(asked_as(entry, models), asked))
        problem = next((setting.problem for setting in sheet.settings if setting.problem is not None), None)
        if problem is not None:
            raise LibraryError(problem, ExitCode.USAGE)
    _print(entry.name, settings_of(entry.path), as_json)


def _texts(changes: list[str], resets: list[str]) -> dict[str, str | None]:
    """Return the text for each setting that changes, None for what is reset; raises BadSetting."""
    from core.values.model_settings import NAMES, BadSetting, setting_name

    texts: dict[str, str | None] = dict.fromkeys(NAMES if _ALL in resets else map(setting_name, resets))
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise BadSetting(f"{change[:40]!r} sets nothing: write KEY=VALUE, as in temperature=0.6.")
        texts[setting_name(key)] = value
    return texts


def _print(name: str, found: ModelSettings, as_json: bool) -> None:
    from core.values.model_settings import NAMES, recommended

    if as_json:
        say_json({"name": name, "settings": found.given})
        return
    rows = [
        [key, str(found.given[key]) if key in found.given else "-", f"recommended: {recommended(key)}"] for key in NAMES
    ]
    say(f"{name}\n\n{table(rows)}")
