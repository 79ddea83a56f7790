"""``slipstream keys``: the API keys of clients, each with a name, so that one can be taken back alone."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.terminal.text import say, say_json, say_on_stderr, table
from app.settings.api_keys import KeyStore

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
_MANAGE = "load, unload, download, change and remove models, change remotes, see the log"


def build() -> typer.Typer:
    """Return the commands below ``keys``."""
    app = typer.Typer(help="Give clients API keys of their own, and take them back.", no_args_is_help=True)
    for name, function in (("add", _add), ("list", _list), ("change", _change), ("revoke", _revoke)):
        app.command(name=name)(function)
    return app


def _add(
    name: _Name,
    may_manage: Annotated[bool, typer.Option("--manage", help=f"Let it also {_MANAGE}.")] = False,
    as_json: _Json = False,
) -> None:
    """Make a key for a client, as "laptop" or "editor".

    It is shown this once: of a key only its hash is kept. Servers of this user, also those that run, take it at once,
    and from then on take nobody without a key. It may use the models, and with --manage manage them too.
    """
    store = KeyStore()
    key = store.add(name, may_manage=may_manage)
    try:
        if as_json:
            say_json({"name": name, "key": key})
        else:
            say(f"The key {name}, which is shown this once:")
            print(key, flush=True)
    except OSError:  # nobody has seen it
        store.revoke(name)
        say_on_stderr(f"The key {name} could not be shown, so it is not kept.")
        raise


def _list(as_json: _Json = False) -> None:
    """List the keys: their names, what they may do, when they were made, and when they were used last."""
    keys = KeyStore().all()
    if as_json:
        say_json([asdict(key) for key in keys])
        return
    rows = [
        [
            key.name,
            "manages models" if key.may_manage else "uses models",
            f"made {_day(key.made)}",
            f"used {_day(key.used)}" if key.used else "not used yet",
        ]
        for key in keys
    ]
    print(table(rows) or "There are no keys: servers of this machine alone take requests without one.")


def _change(
    name: _Name,
    may_manage: Annotated[
        bool,
        typer.Option("--manage/--use-only", show_default=False, help=f"Let it {_MANAGE}, or only use models."),
    ],
    as_json: _Json = False,
) -> None:
    """Let a key manage models, or only use them, from the next request on."""
    KeyStore().let(name, may_manage=may_manage)
    if as_json:
        say_json({"name": name, "may_manage": may_manage})
        return
    say(f"{name} may manage models." if may_manage else f"{name} may use models only.")


def _revoke(name: _Name, as_json: _Json = False) -> None:
    """Take a key back: servers refuse it from the next request on."""
    store = KeyStore()
    store.revoke(name)
    if as_json:
        say_json({"name": name, "revoked": True})
        return
    say(f"Revoked {name}.")
    if store.is_empty:
        say("That was the last one: servers that listen on this machine alone take requests without a key again.")


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
