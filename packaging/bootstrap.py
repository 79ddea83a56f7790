"""Sets Slipstream up: system packages, .venv, pinned packages, llama.cpp built for this machine, self-test.

The launcher ``slipstream`` runs this on a bare Python (3.11 or newer) when its stamp is missing or out of date. Every
step first checks whether it is done already, so an interrupted set-up goes on where it stopped. This folder must not
become a package: "packaging" is the name of a project that others import.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from first_start import lock, qt_libraries, requirements, stamp, system_packages
from first_start.advice import advise, advise_on_refusal
from first_start.chat_templates import keep_templates
from first_start.command import Log, end_with_parent, pip_environment, run_logged
from first_start.errors import CommandFailed, SetupError
from first_start.llama_build import Backend
from first_start.llama_install import Build, LlamaInstall
from first_start.progress import SetupProgress
from first_start.venv_folder import LOCK, LOG, VenvFolder
from first_start.wheel_cache import WheelCache, cache_folder

ROOT = Path(__file__).resolve().parent.parent
_N_STEPS = 5
_NEEDED_BYTES = 2_000_000_000
_INTERRUPTED = 130


@dataclass(frozen=True)
class SetupRequest:
    """What the launcher asks for."""

    fingerprint: str
    development: bool
    again: bool
    fresh: bool

    @property
    def stamps(self) -> tuple[str, ...]:
        """The stamps that a finished set-up leaves."""
        return (stamp.APP, stamp.DEVELOPMENT) if self.development else (stamp.APP,)


class Bootstrap:
    """One set-up, step by step."""

    def __init__(self, root: Path, wish: SetupRequest, progress: SetupProgress, log: Log) -> None:
        self.root, self.wish, self.progress, self.log = root, wish, progress, log
        self.venv = VenvFolder(root)
        self.requirements, self.constraints = requirements.read(root)
        cache = WheelCache(usable_folder(cache_folder(os.environ), root))
        wanted = self.requirements
        self.llama = LlamaInstall(self.venv, wanted.llama_version, wanted.cuda, cache, os.environ, self.pip)

    def run(self) -> None:
        """Do all steps; afterwards the launcher finds its stamps."""
        self.install_system_packages()
        stamp.remove(self.venv)  # not before: what works goes on where a package is missing that only root can install
        self.prepare_venv()
        self.install_packages()
        build = self.install_llama()
        if self.wish.development:
            self.fetch_templates()
        self.self_test(build)
        stamp.put(self.venv, self.wish.fingerprint, self.wish.stamps)

    def install_system_packages(self) -> None:
        """Step 1: what Qt and the compiler need from the system, and with ``--dev`` what the checks need."""
        self.progress.begin("System packages")
        needs = system_packages.read_needs(self.root)

        def follow(line: str) -> None:
            self.progress.update(line.strip())

        done = system_packages.ensure(needs, self.log, follow)
        left_out = system_packages.ensure_checks(self.root, self.log, follow) if self.wish.development else ""
        self.progress.end(done)
        if left_out:
            self.progress.say(f"      {left_out}")

    def prepare_venv(self) -> None:
        """Step 2: a virtual environment that works, repaired or made anew if need be."""
        self.progress.begin("Python environment")
        repaired: tuple[str, ...] = ()
        if self.wish.fresh or not self.venv.follow_its_folder() or self.venv.pip_version() is None:
            check_free_space(self.root)
            self.venv.make(self.log)
        else:
            repaired = self.venv.drop_incomplete()
        self.venv.link_project()
        wanted = requirements.pinned_version(self.constraints, "pip")
        if self.venv.pip_version() != wanted:
            self.pip("The update of pip", "install", f"pip=={wanted}")
        notice = f", repairing {', '.join(repaired)}" if repaired else ""
        self.progress.end(f"Python {self.venv.version} in .venv{notice}")

    def install_packages(self) -> None:
        """Step 3: the Python packages of the app, and with ``--dev`` those of the checks."""
        self.progress.begin("Python packages")
        wanted = self.requirements.app + (self.requirements.development if self.wish.development else ())
        self.pip(
            "The installation of Python packages",
            *("install", "--only-binary", ":all:", "--constraint", str(self.root / "constraints.txt"), *wanted),
        )
        missing = qt_libraries.missing_libraries(self.venv.site_packages)
        self.progress.end("up to date")
        if missing:
            self.progress.say(
                f"      Qt lacks {', '.join(missing)}: the window may not open. Install their packages; "
                "./slipstream chat and ./slipstream serve work without."
            )

    def install_llama(self) -> Build:
        """Step 4: llama.cpp, built for this machine or taken from the cache of builds. Return the build."""
        self.progress.begin("llama.cpp")
        llama = self.llama
        build = llama.wanted()
        if self.wish.fresh:
            llama.cache.forget(build.key)
        if not self.wish.again:
            build = llama.settled(build)
        done, build = self._install(llama.with_toolkit(build, self.progress))
        self.progress.end(f"{done} (for the {build.plan})")
        if build.plan.note:
            self.progress.say(f"      {build.plan.note}")
        return build

    def _install(self, build: Build) -> tuple[str, Build]:
        """Put a build into the venv, for the CPU if the one for a GPU fails; return how it got there, and the build."""
        llama = self.llama
        if llama.installed_key() == build.key:
            return "up to date", build
        wheel, done = llama.cache.find(build.key), "taken from the cache"
        if wheel is None:
            wheel, build = llama.make(build, self.log, self.progress)
            done = "built"
        llama.install(wheel, build)
        return done, build

    def fetch_templates(self) -> None:
        """Fetch the chat templates of real models for the checks. Without a network the set-up goes on without them."""
        try:
            keep_templates(self.llama.cache.folder, self.llama.version, self.pip)
        except CommandFailed:
            self.progress.say(
                "      The chat templates in llama-cpp-python's sources could not be fetched: the checks that need "
                "them are left out. With a network, ./slipstream setup --dev fetches them."
            )

    def self_test(self, build: Build) -> None:
        """Step 5: a tiny decode in a child process. A build that fails it is removed from the cache.

        One for the CPU takes the place of one for a GPU.
        """
        self.progress.begin("Self-test")
        command = [str(self.venv.python), "-P", "-m", "app.doctor.self_test"]
        try:
            run_logged("The self-test of llama.cpp", command, self.log)
        except CommandFailed as error:
            self.llama.cache.forget(build.key)
            if build.plan.backend is Backend.CPU:
                raise SetupError("\n".join(error.tail) or str(error)) from error
            self.progress.end(f"failed for the {build.plan}; llama.cpp is built for the CPU instead")
            self.llama.cache.note_failure(build.key)
            self.wish = replace(self.wish, again=False, fresh=False)
            self.progress.go_back(2)
            self.self_test(self.install_llama())
            return
        self.progress.end("passed")

    def pip(self, what: str, *arguments: str) -> None:
        """Run pip in the venv with the user's own configuration of where packages come from."""
        command = [str(self.venv.python), "-E", "-s", "-m", "pip", *arguments, "--no-input"]
        run_logged(what, command, self.log, pip_environment(os.environ), self.follow_pip)

    def follow_pip(self, line: str) -> None:
        """Show what pip is doing."""
        detail = describe_pip(line)
        if detail:
            self.progress.update(detail)


def describe_pip(line: str) -> str:
    """Return what a line of pip's output says about its progress; "" if it says nothing."""
    match = re.match(r"\s*(Collecting|Downloading|Installing collected packages|Installing build dependencies)\b", line)
    if not match:
        return ""
    if match.group(1).startswith("Installing"):
        return "installing"
    # Project and version are enough of a wheel's long file name.
    text = re.sub(r"(\S+?-[^-\s]+)-\S+\.whl\b", r"\1", line.strip().split(" (from ")[0])
    return text.replace("Collecting", "looking for").replace("Downloading", "fetching")


def check_free_space(folder: Path) -> None:
    """Raise SetupError if the disk has too little space for the set-up."""
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise SetupError(
            f"The set-up needs {_NEEDED_BYTES // 10**6:,} MB of disk in {folder}, and {free // 10**6:,} MB are free. "
            "Free some space, then start Slipstream again."
        )


def usable_folder(folder: Path, root: Path) -> Path:
    """Make ``folder`` and return it, or a folder in the project if the user's cache cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    inside = root / ".cache" / "wheels"
    inside.mkdir(parents=True, exist_ok=True)
    return inside


def parse_wish(arguments: Sequence[str]) -> SetupRequest:
    """Parse the launcher's arguments."""
    parser = argparse.ArgumentParser(prog="./slipstream setup", description="Set Slipstream up again.")
    parser.add_argument("--fresh", action="store_true", help="from nothing: a new .venv, a new build of llama.cpp")
    for option in ("--dev", "--again"):
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stamp", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    return SetupRequest(given.stamp, development=given.dev, again=given.again or given.fresh, fresh=given.fresh)


def set_up(root: Path, wish: SetupRequest) -> None:
    """Set up, unless another process did so while this one waited for it."""
    venv = VenvFolder(root)

    def tell_waiting() -> None:
        print("Another set-up is running in this folder; waiting for it to finish ...", flush=True)

    with lock.hold(venv.path / LOCK, tell_waiting):
        if not wish.again and stamp.is_stamped(venv, wish.fingerprint, wish.stamps):
            return
        progress = SetupProgress(sys.stdout, _N_STEPS)
        progress.say("Setting up Slipstream. The next start is instant.")
        with Log(venv.path / LOG, progress.tick) as log:
            try:
                Bootstrap(root, wish, progress, log).run()
            except BaseException:
                progress.abandon()
                raise
        progress.say(f"Ready after {progress.spell_total()}.")


def explain(error: SetupError, log: Path) -> str:
    """Return a failed command's last lines, where its log is, and advice, as one text for the user."""
    if not isinstance(error, CommandFailed):
        return str(error)
    lines = "".join(f"    {line}\n" for line in error.tail)
    return f"{error}\n\n{lines}\nThe whole output is in {log}.\n{advise(error.tail)}"


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Set up, and return the exit code; print what is wrong if it fails."""
    wish = parse_wish(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        set_up(root, wish)
    except SetupError as error:
        print(explain(error, root / ".venv" / LOG), flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        print("Interrupted. Start Slipstream again: the set-up goes on where it stopped.", flush=True)
        return _INTERRUPTED
    except OSError as error:
        stopped = f"The set-up stopped: {error}. Fix that, then start Slipstream again."
        print(advise_on_refusal(error, root) or stopped, flush=True)
        return 1
    return 0


def interrupt(number: int, frame: FrameType | None) -> None:
    """Treat a signal to end like Ctrl-C: stop the running command first."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    # A kill reaches only the launcher's shell.
    end_with_parent(signal.SIGTERM)
    sys.exit(main(sys.argv[1:]))
