"""``slipstream models hub``, ``login`` and ``logout``: how the Hub is reached, and as whom."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.text import ask_secret, say_json, say_on_stderr, table

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
    from app.cli.models.library import answer
    from app.library.hub_access import hub_facts
    from app.library.trouble import as_library_errors
    from models.library.requests import ChangeHub

    with as_library_errors():
        if address is not None or proxy is not None:
            answer(ChangeHub(address, proxy), same_hub=True)
        found = hub_facts()
    if address and found.address != address.rstrip("/"):
        say_on_stderr(f"{address} is kept, but HF_ENDPOINT is set and goes before it.")
    facts = {"address": found.address, "proxy": found.proxy, "token": found.token, "offline": found.is_offline}
    if as_json:
        say_json(facts)
        return
    names: dict[object, str] = {None: "none", True: "yes", False: "no"}
    print(table([[label, names.get(value, str(value))] for label, value in facts.items()]))


def login(as_json: _Json = False) -> None:
    """Keep an access token of the Hub in the system's keyring, for gated and private models.

    The token is asked for without showing it, or read from a pipe; it is in no file, log or command line.
    """
    from app.cli.models.library import answer
    from app.library.hub_access import hub_settings
    from app.library.trouble import as_library_errors
    from models.library.requests import LogIn

    with as_library_errors():
        address = hub_settings().address
        user = answer(LogIn(ask_secret("Access token")), same_hub=True).user
    say_json({"user": user}) if as_json else print(f"Logged in at {address} as {user}.")


def logout(as_json: _Json = False) -> None:
    """Remove the Hub's access token from the system's keyring."""
    from app.cli.models.library import answer
    from app.library.hub_access import hub_settings
    from app.library.trouble import as_library_errors
    from models.files.system_keyring import kept_secret
    from models.hub.settings import SERVICE
    from models.library.requests import LogOut

    with as_library_errors():
        address = hub_settings().address
        was_there = kept_secret(SERVICE, address) is not None
        answer(LogOut(), same_hub=True)
    if as_json:
        say_json({"was_logged_in": was_there})
        return
    print(f"Logged out of {address}." if was_there else "There was no token in the keyring.")
