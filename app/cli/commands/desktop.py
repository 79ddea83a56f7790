"""``slipstream desktop``: the desktop app, also what opens without a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.environment.exit_codes import ExitCode


def desktop(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A GGUF file to use and to open.", show_default=False)
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Put Slipstream and .gguf files into the desktop's menus.")
    ] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take both out of the menus again.")] = False,
) -> None:
    """Open the desktop app.

    With --install it is among the programs of your desktop from then on, and a double-click opens a .gguf file.
    """
    if install or uninstall:
        _change_menus(install=install, uninstall=uninstall)
        return
    from app.desktop.desktop_app import run_desktop

    raise typer.Exit(run_desktop(file))


def _change_menus(*, install: bool, uninstall: bool) -> None:
    from app.cli.terminal.text import say, say_on_stderr
    from ui.platform.desktop_entry import DesktopEntry, EntryRefused

    if install and uninstall:
        say_on_stderr("Error: --install and --uninstall exclude each other: leave out one of them.")
        raise typer.Exit(ExitCode.USAGE)
    entry = DesktopEntry()
    try:
        if install:
            entry.install()
            say(f"Slipstream is in the menus of your desktop: {entry.files.entry}")
        else:
            found = entry.uninstall()
            say("Slipstream is no longer in the menus." if found else "Slipstream was not in the menus.")
    except EntryRefused as refused:
        say_on_stderr(f"Error: {refused}")
        raise typer.Exit(ExitCode.ERROR) from refused
