from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# Qt needs no display for what is tested here.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# The set-up's folder is no package: it is put on the path as Python does for a script.
sys.path.insert(0, str(ROOT / "packaging"))

# Stands in for packaging/bootstrap.py: makes a venv whose Python writes down how it is called.
STUB = r"""
import os, pathlib, sys, time
root = pathlib.Path(__file__).resolve().parent.parent
with open(root / "set-ups", "a") as calls:
    calls.write(repr(sys.argv[1:]) + "\n")
arguments = sys.argv[1:]
if os.environ.get("STUB_EXIT"):
    print("the set-up failed")
    sys.exit(int(os.environ["STUB_EXIT"]))
venv = root / ".venv"
(venv / "bin").mkdir(parents=True, exist_ok=True)
(venv / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.12.4\n")
python = venv / "bin" / "python"
python.write_text(
    "#!/bin/sh\n"
    f'exec 3>>"{root}/calls"\n'
    'printf "%s|" "$PWD" "${PYTHONPATH-unset}" "${PYTHONSAFEPATH-unset}" "${QT_QPA_PLATFORM-unset}" "$@" >&3\n'
    'echo >&3\n'
    f'printf "%s\\n" "${{SLIPSTREAM_PROGRAM-unset}}" >>"{root}/typed"\n'
    f'printf "%s\\n" "${{PYTHONUTF8-unset}}" >>"{root}/utf8"\n'
    'case "$*" in *"${FAIL-nothing fails}"*) exit 7;; esac\n'
)
python.chmod(0o755)
fingerprint = arguments[arguments.index("--stamp") + 1]
for name in [".slipstream-stamp"] + [".slipstream-stamp-dev"] * ("--dev" in arguments):
    (venv / name).write_text(fingerprint + "\npython 3.12.4\n")
"""


@dataclass(frozen=True)
class Checkout:
    """A project folder with the real launcher and a set-up that only writes down that it ran."""

    folder: Path

    def start(
        self, *arguments: str, launcher: str | None = None, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "QT_"))}
        return subprocess.run(
            [launcher or str(self.folder / "slipstream"), *arguments],
            capture_output=True,
            text=True,
            cwd=cwd or self.folder,
            timeout=60,
            check=False,
            env={**known, "SLIPSTREAM_PYTHON": sys.executable, **environment},
        )

    @property
    def set_ups(self) -> list[list[str]]:
        """The arguments of each set-up that ran, without the fingerprint."""
        file = self.folder / "set-ups"
        calls = [eval(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [call[:1] + call[2:] for call in calls]

    @property
    def typed(self) -> list[str]:
        """What each start of the venv's Python was told was typed."""
        return (self.folder / "typed").read_text().splitlines()

    @property
    def calls(self) -> list[list[str]]:
        """What each start of the venv's Python saw: folder, PYTHONPATH, PYTHONSAFEPATH, Qt's platform, arguments."""
        file = self.folder / "calls"
        return [line.split("|")[:-1] for line in file.read_text().splitlines()] if file.exists() else []


PATCH = "packaging/first_start/patches/0001-attention-row-by-row.patch"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    folder = tmp_path / "my projects" / "slip stream"
    (folder / "packaging" / "first_start" / "patches").mkdir(parents=True)
    shutil.copy2(ROOT / "slipstream", folder)
    sources = ("packaging/first_start/llama_sources.cmake", PATCH)
    for name in ("pyproject.toml", "constraints.txt", "packaging/system-packages.txt", *sources):
        shutil.copy(ROOT / name, folder / name)
    (folder / "packaging" / "bootstrap.py").write_text(STUB)
    (folder / "packaging" / "first_start" / "machine.py").write_text("")
    return Checkout(folder)
