"""``python -m app``: the command line."""

from __future__ import annotations

import sys


def _main() -> int:
    try:
        from app.cli import main

        return main()
    except KeyboardInterrupt:  # Ctrl-C so early that nothing was there to take it
        return 130


if __name__ == "__main__":
    sys.exit(_main())
