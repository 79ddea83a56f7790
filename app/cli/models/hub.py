"""``slipstream models hub``, ``login`` and ``logout``: how the Hub is reached, and as whom."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from app.cli.terminal.text import table

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
    """Show or change how the Hub is reached.

    The variables HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE go before what is set here.
    """
    from app.library.hub_access import change_hub, hub_settings
    from app.library.trouble import as_library_errors

    with as_library_errors():
        if address is not None or proxy is not None:
            change_hub(address, proxy)
        settings = hub_settings()
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
    from app.library.hub_access import hub, log_in
    from app.library.trouble import as_library_errors

    with as_library_errors():
        address = hub().settings.address
        user = log_in(_ask())
    print(json.dumps({"user": user}) if as_json else f"Logged in at {address} as {user}.")


def logout(as_json: _Json = False) -> None:
    """Remove the Hub's access token from the system's keyring."""
    from app.library.hub_access import hub_settings, log_out
    from app.library.trouble import as_library_errors

    with as_library_errors():
        address, was_there = hub_settings().address, log_out()
    if as_json:
        print(json.dumps({"was_logged_in": was_there}))
        return
    print(f"Logged out of {address}." if was_there else "There was no token in the keyring.")


def _ask() -> str:
    from getpass import getpass

    return getpass("Access token (it is not shown): ") if sys.stdin.isatty() else sys.stdin.readline(4096)
