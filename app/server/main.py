"""Runs the server: opens the port, starts the engine, and only then imports what speaks HTTP."""

from __future__ import annotations

import _thread
import contextlib
import gc
import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.client import discovery
from app.client.server_process import READY_PREFIX
from app.environment.early_interrupts import EarlyInterrupts
from app.environment.exit_codes import ExitCode
from app.environment.paths import cache_folder, log_folder
from app.library.find_model import catalog, find_draft, find_model, last_chosen
from app.pairing.chosen_draft import ChosenDraft
from app.server.calls.engine_bridge import EngineBridge
from app.server.calls.model_host import ModelHost, NamedParts
from app.server.calls.model_pool import ModelPool
from app.server.calls.request_totals import RequestTotals
from app.server.http.listening_socket import address_of, is_socket_path, listen_on, stop_listening
from app.settings.model_settings_store import note_choice
from app.settings.server_settings import ServerSettings, names_this_machine
from core.machine.host import set_allocator
from core.process.engine_process import EnginesAtWork
from core.process.supervisor import Supervisor
from core.values.errors import BadOption
from core.values.messages import EnginePhase
from models.files.disk import held_lock, numbered

if TYPE_CHECKING:
    from filelock import FileLock

    from app.server.http.http_server import HttpServer
    from app.server.http.keys import ApiKeys
    from core.values.messages import LoadedModel
    from models.catalog.catalog import Catalog, ModelEntry

_log = logging.getLogger("slipstream.server")


def run_server(settings: ServerSettings) -> int:
    """Serve until told to leave (Ctrl-C, SIGTERM, or the end of standard input); return the exit code.

    A model that cannot be loaded does not end the server: its state says what is wrong, and another can be chosen.
    Raises SlipstreamError for what cannot be begun with: an address, a model or a draft that is not there.
    """
    interrupts = EarlyInterrupts()
    gc.disable()  # until it listens: to look through what is imported again and again takes an eighth of the start
    _return_large_blocks()
    # The least there is: the time for a whole number in a body grows with the square of its digits.
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    if settings.exit_with_stdin:
        # Leave, as after Ctrl-C, when standard input ends: whoever started us is gone, maybe before we were ready.
        threading.Thread(target=_follow_stdin, name="stdin", daemon=True).start()
    log_lock = _log_to_file_and_stderr()
    listening = listen_on(settings.hosts, settings.port)
    try:
        return _run(settings, listening, interrupts)
    finally:
        stop_listening(listening, settings.hosts)
        log_lock.release()


def _return_large_blocks() -> None:
    """Let blocks of a megabyte go back to the system when they are freed, as those of a long body.

    glibc keeps them from the second one on: after some bodies of 10 MB the server would stay 150 MB larger.
    """
    m_mmap_threshold = -3
    set_allocator((m_mmap_threshold, 1 << 20))


def _run(settings: ServerSettings, listening: list[socket.socket], interrupts: EarlyInterrupts) -> int:
    models = catalog()
    entry = _entry(settings, models)
    draft = find_draft(settings.draft, models) if settings.draft is not None else None
    aliases = tuple((alias, _listed_name(name, models)) for alias, name in settings.aliases)
    settings = replace(settings, aliases=aliases)
    if settings.mmproj is not None and not os.path.isfile(settings.mmproj):
        raise BadOption(f"There is no file {settings.mmproj}: --mmproj takes the path of a projector (mmproj….gguf).")
    totals = RequestTotals()
    named = NamedParts(
        entry.path,
        draft.path if draft is not None else None,
        Path(settings.mmproj) if settings.mmproj is not None else None,
    )

    def draft_of(entry: ModelEntry) -> ChosenDraft:
        from app.pairing.service import draft_for  # on the thread that loads: others start meanwhile

        return draft_for(entry, models, settings)

    at_work = EnginesAtWork()

    def engine() -> ModelHost:
        bridge = EngineBridge(totals)
        folders = {"log_folder": log_folder(), "cache_folder": cache_folder()}
        supervisor = Supervisor(bridge.deliver, **folders, at_work=at_work)
        return ModelHost(supervisor, bridge, settings, draft_of, named)

    pool = ModelPool(engine, models, settings, _fits_beside)
    try:
        pool.load(entry)
        _serve(settings, pool, listening, interrupts)
    finally:
        discovery.withdraw()
        pool.end()
    return ExitCode.OK


def _serve(
    settings: ServerSettings,
    pool: ModelPool,
    listening: list[socket.socket],
    interrupts: EarlyInterrupts,
) -> None:
    # These take most of the start; the engine loads meanwhile.
    from app.server.application import create_application
    from app.server.calls.run_recorder import OpenRequests, RunRecorder
    from app.server.http.http_server import HttpServer
    from app.server.http.keys import ApiKeys
    from app.server.owner_routes import OpenPort

    ports = [one.getsockname()[1] for one in listening if one.family != getattr(socket, "AF_UNIX", None)]
    port: int | None = ports[0] if ports else None

    def on_started(server: HttpServer) -> None:
        if interrupts.came:
            server.stop()
            return
        application.state.open_port = OpenPort(server, keys, application.state.origins)
        gc.freeze()  # what was imported stays for good: looking through it again and again would stall the streams
        # Bodies are read on the event loop. One with many nested lists takes down to half the time with this.
        gc.set_threshold(20_000, 10, 10)
        gc.enable()
        say_what_is_served(settings, keys, pool.main, port)

    def on_stop() -> None:
        pool.close()
        application.state.library.close()
        application.state.remotes.figures.end_all()

    recorders: list[RunRecorder] = []
    shared = OpenRequests()

    def record(host: ModelHost) -> None:
        recorders.append(RunRecorder(cache_folder(), lambda: host.model, shared))
        host.bridge.observers.append(recorders[-1])

    pool.on_engine(record)
    keys = ApiKeys(settings)
    application = create_application(settings, pool, keys)
    if settings.last_model and (first := pool.main.entry) is not None and not first.is_toy:
        note_choice(first.path)  # from now on what programs ask for, which is use too, does not take its place
    if interrupts.came:
        return
    try:
        HttpServer(application, on_started, on_stop).serve_until_stopped(listening)
    finally:
        for recorder in recorders:
            recorder.save()


def _entry(settings: ServerSettings, models: Catalog) -> ModelEntry:
    from models.catalog.catalog import STARTER, ModelEntry

    if settings.model is not None:
        return find_model(settings.model, models)
    if settings.last_model and (last := last_chosen(models)) is not None:
        return last
    # Without a look into the catalogue, which reads the header of every model.
    return ModelEntry(STARTER.stem, STARTER, is_toy=True)


def _listed_name(name: str, models: Catalog) -> str:
    """Return the name by which a model is listed, or its path if it is not; "" stays. Raises as ``find_model``."""
    if not name:
        return name
    entry = find_model(name, models)
    listed = models.find(entry.name)
    return entry.name if listed is not None and listed.path == entry.path else str(entry.path)


def _fits_beside(entry: ModelEntry, loaded: Sequence[LoadedModel]) -> bool:
    """Whether a model can be loaded beside others as well as without them."""
    from app.fit_reports.fit_reports import fits_beside
    from app.server.chat.model_card import facts_of

    facts = facts_of(entry)
    # The system counts the memory of mapped files as free.
    n_mapped = sum(model.n_bytes for model in loaded if model.is_mapped and not model.n_gpu_layers)
    return facts is None or fits_beside(facts, entry.path, n_mapped)


def say_what_is_served(settings: ServerSettings, keys: ApiKeys, host: ModelHost, port: int | None) -> None:
    """Say where the server is, and list it for other commands; one with Unix sockets alone is not listed."""
    problem, url = None, f"unix:{settings.hosts[0]}"
    addresses = [one for one in settings.hosts if not is_socket_path(one)]
    if port is not None:
        problem = discovery.enlist(host=addresses[0], port=port, api_key=keys.local, model=host.name)
        url = discovery.local_url(addresses[0], port)
    with contextlib.suppress(OSError):  # whoever would have read it is gone already
        if problem:
            print(problem, file=sys.stderr)
        if settings.announce:
            print(f"{READY_PREFIX}{url}", flush=True)
        else:
            here = [f"{discovery.local_url(one, port)}/v1" for one in addresses if port is not None]
            here += [f"unix:{one}" for one in settings.hosts if is_socket_path(one)]
            names = [address_of(one) for one in addresses if not names_this_machine(one)]
            there = [f"http://{name}:{port}/v1" for name in names if name is not None]
            with_key = f" Other machines: {_listed(there)}, with a key." if there else ""
            print(f"{_served(host)} at {_listed(here)}.{with_key} Ctrl-C stops it.", file=sys.stderr, flush=True)


def _listed(addresses: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(addresses))


def _served(host: ModelHost) -> str:
    if host.state.phase is EnginePhase.FAILED:
        return "Slipstream waits for a request that names another model"
    return f"Slipstream serves {host.name}"


def _follow_stdin() -> None:
    with contextlib.suppress(OSError):
        # Not through sys.stdin: its lock would be held when the interpreter leaves.
        while os.read(0, 4096):
            pass
    _thread.interrupt_main()


def _own_log() -> tuple[Path, FileLock]:
    """Return a log that no other server of this user writes, which would move it away, and its lock."""
    paths = numbered(log_folder() / "server.log")
    return next((path, lock) for path in paths if (lock := held_lock(path.with_suffix(".lock"))) is not None)


def _log_to_file_and_stderr() -> FileLock:
    """Return the lock of the file, which keeps other servers from it."""
    from logging.handlers import RotatingFileHandler

    to_stderr = logging.StreamHandler()
    to_stderr.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [to_stderr]
    path, lock = _own_log()
    with contextlib.suppress(OSError):
        # Names of files may hold what UTF-8 cannot.
        handlers.append(
            RotatingFileHandler(path, maxBytes=1 << 21, backupCount=1, encoding="utf-8", errors="backslashreplace")
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=handlers)
    to_stderr.setFormatter(logging.Formatter("%(message)s"))
    logging.raiseExceptions = False  # where the disk is full, each line of the log would become a traceback
    return lock
