"""The self-test of this build of llama.cpp, in a child process, because a wrong build can crash.

``python -m app.doctor.self_test`` says what is wrong in one sentence. ``--describe`` prints what llama.cpp reports
about itself and this machine as JSON.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict

from app.doctor.machine import package_version
from app.doctor.report import LlamaSystem
from core.process.child_process import run_module
from core.values.errors import SlipstreamError, llama_error_in
from models.formatting.program import PROGRAM, PROGRAM_FOLDER, advice
from models.formatting.sentence import Sentence

# llama.cpp is imported within functions: a process that starts the checks in a child must not load it itself.

# Arguments of the module: run the checks in this process, and print what this build is.
_CHILD, DESCRIBE = "--in-child", "--describe"
_STARTER = PROGRAM_FOLDER / "models" / "starter" / "ember-q8_0.gguf"
# Seconds for all checks; they take about one.
_SECONDS = 120
_ADVICE = advice(
    f"Delete the folder .venv and run {PROGRAM} again: it builds llama.cpp anew for this machine.",
    Sentence(
        "Quit, delete the folder .venv in Slipstream's folder and start again: llama.cpp is built "
        "anew for this machine."
    ),
)


def explain(code: int, output: str, errors: str) -> str | None:
    """Return the sentence for a child's exit code, what it printed, and its stderr; None if all is well."""
    if code == 0:
        return None
    said = llama_error_in(errors)
    if code > 0:
        output = " ".join((output.strip(), said)).strip() or "".join(errors.strip().splitlines()[-1:])
        return f"llama.cpp does not work here. {output or f'The self-test ended with code {code}.'} {_ADVICE}"
    if -code in (signal.SIGILL, signal.SIGSEGV):
        name = signal.Signals(-code).name
        return Sentence(
            "llama.cpp crashed in a test decode ({name}): it was built with instructions that this CPU "
            "does not run correctly (known for AMX with gcc 12). {advice}",
            name=name,
            advice=_ADVICE,
        )
    number = f"{-code} ({said})" if said else -code
    return Sentence("llama.cpp ended with signal {number} in the self-test. {advice}", number=number, advice=_ADVICE)


def run_in_child() -> str | None:
    """Run the checks in a child process; return a sentence on what failed, None if nothing did."""
    try:
        child = run_module("app.doctor.self_test", _CHILD, seconds=_SECONDS)
    except subprocess.TimeoutExpired:
        return Sentence(
            "llama.cpp did not finish a test decode within {seconds} s. {advice}", seconds=_SECONDS, advice=_ADVICE
        )
    return explain(child.returncode, child.stdout, child.stderr)


def _check_here() -> int:
    """Run every check in this process; print the first that fails."""
    try:
        from core.llama.build import check_decode, check_structures, check_versions
        from core.llama.library import log_errors

        log_errors()
        check_versions()
        check_structures()
        check_decode(str(_STARTER))
    except SlipstreamError as error:
        print(error)
        return 1
    return 0


def _describe_here() -> int:
    """Print what llama.cpp reports as one JSON object; exit code 1 with a sentence on stderr where that fails."""
    try:
        from core.llama.build import features, llama_version
        from core.llama.devices import list_devices
        from core.llama.heads import KINDS, why_unavailable
        from core.llama.library import silence_log

        silence_log()
        devices = list_devices()
        found = LlamaSystem(
            package=package_version("llama-cpp-python") or "unknown",
            version=llama_version(),
            features=features(),
            # llama_supports_gpu_offload says yes to every build that can use devices of other machines.
            can_offload=any(device.is_gpu for device in devices),
            devices=devices,
            heads={kind: why_unavailable(kind) for kind in KINDS},
        )
        print(json.dumps(asdict(found)))
    except SlipstreamError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """Run the self-test and print what is wrong; or do what a child process is started for."""
    if _CHILD in sys.argv[1:]:
        return _check_here()
    if DESCRIBE in sys.argv[1:]:
        return _describe_here()
    problem = run_in_child()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    print("llama.cpp works.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
