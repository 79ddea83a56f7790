"""``slipstream desktop``: the desktop app, also what opens without a command."""

from __future__ import annotations

import typer


def desktop() -> None:
    """Open the desktop app."""
    from app.desktop.desktop_app import run_desktop

    raise typer.Exit(run_desktop())
