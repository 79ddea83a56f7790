"""``slipstream cache``: the texts that are kept on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.text import say_json


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show or delete what is kept on disk of prompts and replies, so that they need not be read again.

    A server that runs forgets what is gone and keeps new ones.
    """
    from app.environment.paths import cache_folder
    from core.kv_cache import disk_cache
    from core.values.errors import SlipstreamError
    from models.formatting.figures import size

    folder = cache_folder() / disk_cache.FOLDER
    try:
        n_bytes = disk_cache.clear(cache_folder()) if clear else disk_cache.size(cache_folder())
    except OSError as error:
        raise SlipstreamError(f"{folder} cannot be deleted: {error.strerror}.") from error
    if as_json:
        say_json({"folder": str(folder), "bytes": n_bytes, "cleared": clear})
    else:
        print(f"{size(n_bytes)} {'were deleted from' if clear else 'in'} {folder}")
