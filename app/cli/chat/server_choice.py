"""Which server the user wants to answer, as options of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """A model, or the address of a server, or neither: then whatever runs, else the bundled model."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="NAME", help="Name, title or path of a model; the bundled one if left out."
        ),
    ] = None
    url: Annotated[str | None, typer.Option(help="Use the server at this address.", metavar="URL")] = None
    api_key: Annotated[
        str | None, typer.Option(help="The key of that server.", metavar="KEY", envvar="SLIPSTREAM_API_KEY")
    ] = field(default=None, repr=False)
