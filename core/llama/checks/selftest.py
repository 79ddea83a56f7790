"""The start-up self-test: does this build of llama.cpp fit these bindings and this CPU?

``python -m core.llama.checks.selftest`` runs the checks in a child process, because a wrong build can crash, and turns
the result into one readable sentence.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from core.ipc.child_process import run_module
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

_CHILD = "--in-child"
_STARTER = Path(__file__).resolve().parents[3] / "models" / "starter" / "ember-q8_0.gguf"
# Seconds for all checks; they take about one.
_SECONDS = 120
# Structures are passed to C by value: sizes of another version would corrupt memory silently.
_STRUCT_SIZES = {"llama_model_params": 80, "llama_context_params": 160, "llama_batch": 56, "llama_token_data": 12}
_ADVICE = advice(
    f"Delete the folder .venv and run {PROGRAM} again: it builds llama.cpp anew for this machine.",
    Sentence(
        "Quit, delete the folder .venv in Slipstream's folder and start again: llama.cpp is built "
        "anew for this machine."
    ),
)


class SelfTestFailed(Exception):
    """A check failed; the text says which."""


def check_versions() -> None:
    """Check that the pinned release is installed."""
    from core.llama.library import PINNED_VERSION

    found = version("llama-cpp-python")
    if found != PINNED_VERSION:
        raise SelfTestFailed(f"llama-cpp-python is {found}, but Slipstream is written for {PINNED_VERSION}.")


def check_structures() -> None:
    """Check the sizes of structures passed by value, and the default context parameters."""
    from core.llama.library import L

    if sys.maxsize > 2**32:
        for name, expected in _STRUCT_SIZES.items():
            found = ctypes.sizeof(getattr(L, name))
            if found != expected:
                raise SelfTestFailed(f"The structure {name} has {found} bytes instead of {expected}.")
    params = L.llama_context_default_params()
    if (params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max) != (512, 2048, 512, 1):
        raise SelfTestFailed("llama.cpp's default context parameters are not the expected ones.")


def check_decode() -> None:
    """Check that a tiny model computes finite numbers."""
    import numpy as np

    from core.llama.batch import Batch
    from core.llama.context import Context, ContextOptions, DecodeStatus
    from core.llama.model import Model

    model = Model(str(_STARTER))
    context = Context(
        model, ContextOptions(n_cells=256, n_sequences=2, n_outputs=2, n_batch=64, n_ubatch=64, n_threads=1)
    )
    batch = Batch(64)
    batch.add_run(np.arange(32, dtype=np.int32), 0, 0, n_wanted=1)
    status = context.decode(batch)
    context.synchronize()
    if status is not DecodeStatus.OK or not np.isfinite(context.logits(1)).all():
        raise SelfTestFailed(f"A test decode ended with {status.name} or with numbers that are not finite.")
    context.close()
    model.close()


def run_checks() -> int:
    """Run every check in this process; print the first that fails."""
    from core.values.errors import SlipstreamError

    try:
        from core.llama import log

        log.silence()
        for check in (check_versions, check_structures, check_decode):
            check()
    except (SelfTestFailed, SlipstreamError) as error:
        print(error)
        return 1
    return 0


def explain(code: int, output: str) -> str | None:
    """Return the sentence for a child's exit code and output; None if all is well."""
    if code == 0:
        return None
    if code > 0:
        return f"llama.cpp does not work here. {output.strip() or f'The self-test ended with code {code}.'} {_ADVICE}"
    if -code in (signal.SIGILL, signal.SIGSEGV):
        name = signal.Signals(-code).name
        return Sentence(
            "llama.cpp crashed in a test decode ({name}): it was built with instructions that this CPU "
            "does not run correctly (known for AMX with gcc 12). {advice}",
            name=name,
            advice=_ADVICE,
        )
    return Sentence("llama.cpp ended with signal {number} in the self-test. {advice}", number=-code, advice=_ADVICE)


def run_in_child() -> str | None:
    """Run the checks in a child process; return a sentence on what failed, None if nothing did."""
    try:
        child = run_module("core.llama.checks.selftest", _CHILD, seconds=_SECONDS)
    except subprocess.TimeoutExpired:
        return Sentence(
            "llama.cpp did not finish a test decode within {seconds} s. {advice}", seconds=_SECONDS, advice=_ADVICE
        )
    last_line = child.stderr.strip().splitlines()[-1:] if child.returncode else []
    return explain(child.returncode, child.stdout or "".join(last_line))


def main() -> int:
    """Run the self-test; print what is wrong."""
    problem = run_in_child()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    print("llama.cpp works.")
    return 0


if __name__ == "__main__":
    sys.exit(run_checks() if _CHILD in sys.argv[1:] else main())
