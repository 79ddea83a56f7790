#!/usr/bin/env bash
# Tries real clients on a server of this checkout. Each gets an environment of its own, made once and kept in the cache
# folder. Writes docs/clients.md. Arguments: names of clients; all of them if left out.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
exec .venv/bin/python -m tests.clients.run "$@"
