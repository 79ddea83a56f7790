"""What to do about a failed command, told from the last lines of its output, and about a folder of somebody else."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

_AGAIN = "Then start Slipstream again: it goes on where it stopped."
_ANOTHER_PYTHON = "python3.13" if sys.version_info[:2] == (3, 12) else "python3.12"
_ADVICE = (
    (
        r"No space left on device|Disk quota exceeded",
        f"The disk is full. Free some space (about 2 GB; TMPDIR names another folder for the build). {_AGAIN}",
    ),
    (
        r"Killed signal terminated program|virtual memory exhausted|out of memory|cannot allocate memory",
        "The build ran out of memory. Close other programs, or build with fewer compilers at once: "
        "CMAKE_BUILD_PARALLEL_LEVEL=1 ./slipstream",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "A certificate on the way to the packages is not trusted, as behind a company's proxy. Name the proxy's "
        f"certificates: pip config set global.cert FILE. {_AGAIN}",
    ),
    (
        r"name resolution|Network is unreachable|Connection (?:refused|reset|timed out|aborted)|Read timed out|"
        r"ConnectTimeout|NewConnectionError|ProxyError|SSLError|Could not resolve|Failed to fetch|"
        r"Could not connect|Name or service not known",
        f"The network did not answer. Check the connection, a proxy and pip's settings (pip config list). {_AGAIN}",
    ),
    (
        r"No matching distribution found|Could not find a version",
        "A package is not offered for this system or this Python. Linux needs glibc 2.34 or newer (2.39 on ARM). "
        f"SLIPSTREAM_PYTHON={_ANOTHER_PYTHON} ./slipstream setup --fresh tries another Python.",
    ),
    (
        r"Permission denied|Read-only file system",
        "A folder cannot be written to. Make it writable; if it is below .venv, rename .venv: then it is made anew. "
        f"{_AGAIN}",
    ),
    (
        r"nvcc|CUDA|cuda",
        "The CUDA toolkit does not fit its compiler or driver. "
        "CMAKE_ARGS=-DGGML_CUDA=off ./slipstream builds for the CPU.",
    ),
    (
        r"CMAKE_(?:C|CXX)_COMPILER|compiler .* is not able to compile|fatal error: .*\.h",
        "The C and C++ compilers do not work. Install gcc and g++ with their headers, and where CC or CXX names "
        f"another, unset it. {_AGAIN}",
    ),
)


def advise(tail: Sequence[str]) -> str:
    """Return what the user can do, or general advice if nothing in the output is recognised."""
    text = "\n".join(tail)
    for pattern, advice in _ADVICE:
        if re.search(pattern, text, re.IGNORECASE):
            return advice
    return _AGAIN.replace("Then start", "Start")


def advise_on_refusal(error: OSError, root: Path) -> str:
    """Return what a user can do without anybody's help who may not write in the project's folder; "" if it is not that.

    ``error`` names a file without its folders where a folder of .venv was to be removed.
    """
    venv = root / ".venv"
    place = venv / str(error.filename or "")
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or root not in place.parents:
        return ""
    while not os.path.exists(place):  # a Path raises where a folder lets nobody look into it
        place = place.parent
    said = f"The set-up cannot write to {place}: {error.strerror}."
    # Whoever may write to a folder may rename what is in it, also what belongs to somebody else.
    if venv in (place, *place.parents) and os.access(root, os.W_OK, effective_ids=True):
        command = shlex.join(("mv", str(venv), f"{venv}-old-{os.getpid()}"))
        return f"{said} Perhaps another user has set it up. Type this, then start Slipstream again:\n\n    {command}\n"
    return (
        f"{said} A user who may can start Slipstream there once: then everybody can. Or type this, and start it from "
        f"the copy:\n\n    cp -r {shlex.quote(str(root))} ~\n"
    )
