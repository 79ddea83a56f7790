"""``slipstream remotes``: other servers whose models are named like those of this machine."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.text import ask_secret, say, say_json, table
from models.formatting.figures import how_many

if TYPE_CHECKING:
    from app.server.remotes.store import Remote, RemoteStore
    from app.server.remotes.upstream import ModelList

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


def build() -> typer.Typer:
    """Return the commands below ``remotes``."""
    app = typer.Typer(help="Use models of other servers under this one's address.", no_args_is_help=True)
    for name, function in (("add", _add), ("list", _list), ("test", _test), ("remove", _remove)):
        app.command(name=name)(function)
    return app


def _add(
    name: _Name,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Its base URL, as https://host.example/v1.", show_default=False)
    ],
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="Read the API key from standard input.")] = False,
    no_key: Annotated[bool, typer.Option("--no-key", help="Ask for no key.")] = False,
    fallback: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Model of this machine that answers while the remote does not.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Use only this model of it; may be given more than once.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Add an OpenAI-style server, or change the one of this name: its models are then named NAME/ID.

    The key is asked for without showing it, or read from a pipe with --key-stdin. It is kept in the system's keyring,
    and is in no file, log or command line.
    """
    store = _store()
    store.check(name, url)  # before a key is asked for
    remote = store.add(name, url, key=_key(key_stdin, no_key), fallback=fallback, models=model or ())
    known = asyncio.run(_ask(store, remote))
    if as_json:
        say_json(known.as_dict(remote))
        return
    say(f"Added {remote.name} at {remote.url}{'' if remote.has_key else ', without a key'}.")
    if remote.has_key and remote.url.startswith("http:"):
        say("Its address begins with http: the key and all texts go there unencrypted.")
    say(known.problem or _models_sentence(remote, known))
    listed = {one["id"] for one in known.listed}
    if known.problem is None and (missing := [name for name in remote.models if name not in listed]):
        say(f"It does not list {', '.join(missing)}.")
    if remote.fallback and _is_missing(remote.fallback):
        say(f"No model of this machine is named {remote.fallback}: it steps in once one is, or `--alias` names one so.")


def _is_missing(model: str) -> bool:
    from app.library.find_model import catalog  # the catalogue takes its time

    return catalog().find(model, takes_paths=False) is None


def _list(as_json: _Json = False) -> None:
    """List the remotes, and whether they answer."""
    store = _store()

    async def ask_all() -> list[tuple[Remote, ModelList]]:
        remotes = list(store.all().values())
        return list(zip(remotes, await asyncio.gather(*(_ask(store, remote) for remote in remotes)), strict=True))

    found = asyncio.run(ask_all())
    if as_json:
        say_json([known.as_dict(remote) for remote, known in found])
        return
    rows = [
        [
            remote.name,
            remote.url,
            "key" if remote.has_key else "no key",
            f"else {remote.fallback}" if remote.fallback else "",
            known.problem or _models_in(known),
        ]
        for remote, known in found
    ]
    print(table(rows) or "There are no remotes.")


def _test(name: _Name, as_json: _Json = False) -> None:
    """Ask a remote for its models."""
    from app.server.remotes.upstream import RemoteUnreachable

    store = _store()
    remote = store.named(name)
    known = asyncio.run(_ask(store, remote))
    if as_json:
        say_json(known.as_dict(remote))
    if known.problem is not None:
        raise RemoteUnreachable(known.problem)
    if not as_json:
        say(_models_sentence(remote, known))
        for one in known.listed:
            say(f"{remote.name}/{one['id']}")


def _remove(name: _Name, as_json: _Json = False) -> None:
    """Forget a remote and its key."""
    store = _store()
    remote = store.named(name)
    store.remove(name)
    if as_json:
        say_json({"name": remote.name, "removed": True})
    else:
        say(f"Removed {remote.name}.")


def _store() -> RemoteStore:
    from app.server.remotes.store import RemoteStore

    return RemoteStore()


async def _ask(store: RemoteStore, remote: Remote) -> ModelList:
    from app.server.remotes.upstream import Upstream

    upstream = Upstream(store)
    try:
        return await upstream.ask(remote)
    finally:
        await upstream.close()


def _key(from_stdin: bool, no_key: bool) -> str | None:
    if not from_stdin and (no_key or not sys.stdin.isatty()):
        return None
    return ask_secret("API key, or Enter for none")


def _models_sentence(remote: Remote, known: ModelList) -> str:
    example = f", as {remote.name}/{known.listed[0]['id']}" if known.listed else ""
    return f"It answers, and has {_models_in(known)}{example}."


def _models_in(known: ModelList) -> str:
    return how_many(len(known.listed), "model")
