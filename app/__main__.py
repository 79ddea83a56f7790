"""``python -m app``: the command line."""

from __future__ import annotations

import sys


def _main() -> int:
    from app.environment.standard_streams import open_missing_streams

    open_missing_streams()
    try:
        from app.cli.main import main
        from app.environment.paths import make_folders_private, settle_home

        settle_home()
        make_folders_private()
        return main()
    except KeyboardInterrupt:  # Ctrl-C before anything was there to handle it
        return 130


if __name__ == "__main__":
    sys.exit(_main())
