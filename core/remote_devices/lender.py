"""The process that lends devices to one client: ``python -m core.remote_devices.lender``. It ends with its client."""

from __future__ import annotations

import os
import sys

from core.ipc.child_process import die_with_parent, leave_signals_to_the_parent, own_streams
from core.llama.devices import serve_rpc
from core.llama.library import silence_log
from core.machine.measurements import physical_cores
from core.values.errors import SlipstreamError


def main() -> int:
    """Take the order and serve the client; exit code 1 if a device cannot be used."""
    leave_signals_to_the_parent()
    pipe = own_streams()
    die_with_parent()
    silence_log()
    fd, devices, memory = pipe.receive()
    try:
        serve_rpc(fd, devices, memory, physical_cores())
    except SlipstreamError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # Skip C destructors, as the engine process does.
    os._exit(main())
