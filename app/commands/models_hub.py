"""``slipstream models hub``, ``login`` and ``logout``: how the Hub is reached, and as whom."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from app.exit_codes import ExitCode
from app.sizes import table

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def hub(
    address: Annotated[
        str | None, typer.Option(metavar="URL", help='Another Hub or mirror; "" for the usual one.', show_default=False)
    ] = None,
    proxy: Annotated[
        str | None, typer.Option(metavar="URL", help='Proxy for the Hub; "" for none.', show_default=False)
    ] = None,
    as_json: _Json = False,
) -> None:
    """Show or change how the Hub is reached. HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE go before what is set here."""
    from app.library import LibraryError, hub_file, told
    from models.hub.settings import read_settings, save_settings, saved_settings

    with told():
        if address is not None or proxy is not None:
            saved = saved_settings(hub_file())
            try:
                save_settings(
                    hub_file(),
                    address=saved.get("address") if address is None else address,
                    proxy=saved.get("proxy") if proxy is None else proxy,
                )
            except OSError as error:
                raise LibraryError(f"{hub_file()} cannot be written: {error.strerror}.", ExitCode.ERROR) from error
        settings = read_settings(hub_file())
    facts = {
        "address": settings.address,
        "proxy": settings.shown_proxy,
        "token": settings.token.origin if settings.token else None,
        "offline": settings.is_offline,
    }
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    names: dict[object, str] = {None: "none", True: "yes", False: "no"}
    print(table([[label, names.get(value, str(value))] for label, value in facts.items()]))


def login(as_json: _Json = False) -> None:
    """Keep an access token of the Hub in the system's keyring, for gated and private models.

    The token is asked for without showing it, or read from a pipe; it is in no file, log or command line.
    """
    from app.library import hub, told
    from models.hub.token import keep_token

    with told():
        client = hub()
        secret = _ask()
        user = client.user_of(secret)
        keep_token(client.settings.address, secret)
    print(json.dumps({"user": user}) if as_json else f"Logged in at {client.settings.address} as {user}.")


def logout(as_json: _Json = False) -> None:
    """Remove the Hub's access token from the system's keyring."""
    from app.library import hub, told
    from models.hub.token import forget_token

    with told():
        settings = hub().settings
        was_there = forget_token(settings.address)
    if as_json:
        print(json.dumps({"was_logged_in": was_there}))
        return
    print(f"Logged out of {settings.address}." if was_there else "There was no token in the keyring.")


def _ask() -> str:
    from getpass import getpass

    from app.library import LibraryError

    typed = getpass("Access token (it is not shown): ") if sys.stdin.isatty() else sys.stdin.readline(4096)
    secret = typed.strip()
    if not secret or any(character.isspace() or not character.isprintable() for character in secret):
        raise LibraryError("That is no access token. Make one in your account's settings on the Hub.", ExitCode.USAGE)
    return secret
