"""What all tests stand on."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, find, settings, strategies

# Sentences call the program as it was typed, which is whatever started the tests; and nothing leads to the real Hub.
_OF_THE_USER = ("HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
for _name in ("SLIPSTREAM_PROGRAM", *_OF_THE_USER):
    os.environ.pop(_name, None)
# A shell ignores Ctrl-C in what it starts in the background, and so would every program that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is collected stays to the end: to look through it again and again takes a third of the time of what makes many
# objects.
gc.disable()

# A socket that a test leaves open is noticed when the collector finds it, in a later test: it says who made it.
_makers: dict[int, str] = {}
_make, _describe = socket.socket.__init__, socket.socket.__repr__


def _note_maker(made: socket.socket, *arguments: Any, **options: Any) -> None:
    _make(made, *arguments, **options)
    _makers[id(made)] = os.environ.get("PYTEST_CURRENT_TEST", "")


socket.socket.__init__ = _note_maker
socket.socket.__repr__ = lambda one: f"{_describe(one)} made in {_makers.get(id(one))}"

# Hundreds of processes are started, and none of them shall compile what another one has, whatever the shell says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes says what else uses the cores, and nothing of the example.
# Fifty examples: other ones in each run, and a run takes half as long as with a hundred.
settings.register_profile("untimed", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

_MOST_WORKERS = 4
_HERE = Path(__file__).resolve().parent
# Files are taken in this order, those beside the folders first: the last are short ones, so that no worker is left
# alone with a long one.
_FOLDERS = ("benchmarks", "app", "core", "ui", "models", "packaging")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: many a test waits for a process that it started."""
    return min((os.cpu_count() or 1) + 1, _MOST_WORKERS)


def pytest_configure(config: pytest.Config) -> None:
    """Let xdist keep to the order; its own puts files with the fewest tests last, and those are often the longest.

    Each worker begins to collect with another folder: in a new checkout, what one has compiled the others need not.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if int(number) and config.args == [_HERE.name]:
        parts = sorted(map(str, (*_HERE.glob("[a-z]*/"), *_HERE.glob("test_*.py"))))
        first = len(parts) * int(number) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = [*parts[first:], *parts[:first]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files in order."""
    items.sort(key=lambda item: _rank(item.path))


@pytest.fixture(scope="session", autouse=True)
def _own_trash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave the trash and the desktop's menus of whoever runs the tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("xdg")))
        yield


@pytest.fixture(scope="module")
def forked_children() -> Iterator[None]:
    """Let what this process starts be forked: engines, what quantises, and the like."""
    from tests.support.fork_server import fork_children

    end = fork_children()
    yield
    end()


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of what is looked through for garbage."""
    # Hypothesis makes its generator with the first example and looks for what holds it: in vain, were that frozen.
    find(strategies.none(), lambda found: True, settings=settings(database=None))
    gc.freeze()
    gc.enable()


@cache
def _rank(path: Path) -> tuple[int, Path]:
    folder = path.relative_to(_HERE).parts[0]
    return _FOLDERS.index(folder) if folder in _FOLDERS else -1, path
