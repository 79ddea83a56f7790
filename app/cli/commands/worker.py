"""``slipstream worker``: lends this machine's devices to an engine on another machine."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.values.addresses import DEFAULT_WORKER_PORT, WORKER_SCHEME, worker_address
from core.values.errors import BadOption
from models.formatting.program import PROGRAM

if TYPE_CHECKING:
    from core.remote_devices.borrowing import Offered
    from core.remote_devices.lending import Offer


def worker(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; this machine's own lets others in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="N", help="Port; 0 takes any free one.")
    ] = DEFAULT_WORKER_PORT,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Lend this device, as doctor names it; all GPUs if left out, else the CPU."),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(metavar="GIB", help="Lend at most so much of each device; what is free if left out.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File that keeps the token; made where there is none.")
    ] = None,
    remember: Annotated[
        str | None,
        typer.Option(
            metavar="WORKER", help="Lend nothing: ask for the token of the worker rpc://HOST:PORT, try it and keep it."
        ),
    ] = None,
) -> None:
    """Lend this machine's devices and memory to a server on another machine, for a model larger than either.

    The other machine uses them with `serve --device rpc://HOST:PORT` and the token that is printed here. One server at
    a time gets them. Ctrl-C takes them back.
    """
    if remember is not None:
        _remember(remember)
        return
    if memory is not None and not 0 < memory < float("inf"):
        raise BadOption(f"--memory takes GiB above 0, as 4 or 0.5, not {memory:g}.")
    _lend(host, port, _offer(device or [], memory), token_file)


def _remember(address: str) -> None:
    from app.cli.terminal.text import ask_secret
    from app.settings.worker_tokens import add_worker
    from core.remote_devices.borrowing import look

    worker_address(address)  # a mistyped one is told before a secret is asked for
    token = ask_secret("Token of the worker")
    found = look(address, token)
    _show(found.devices)
    print(f"  over a link of {found.link.bandwidth / 1e6:,.0f} MB/s, {found.link.latency * 1000:.2f} ms there and back")
    if not add_worker(address, token):
        raise BadOption(
            "This system has no keyring that could keep the token. Keep it in a file that only you can read, and name "
            "that with --worker-token-file."
        )
    print("Its token is in the system's keyring.")


def _show(devices: tuple[Offered, ...]) -> None:
    from models.formatting.figures import size

    for one in devices:
        print(f"  {one.name}: {one.description} ({one.kind.value}), {size(one.free)} free of {size(one.total)}")


def _offer(names: list[str], memory: float | None) -> Offer:
    """Return what is lent; raises BadOption for a device that is not there."""
    from app.cli.terminal.text import say_on_stderr
    from app.doctor.checks import check_llama
    from app.environment.paths import cache_folder
    from core.machine.known_machine import known_machine
    from core.remote_devices.borrowing import Offered
    from core.remote_devices.lending import Offer
    from models.estimate.fit.memory import free_memory

    llama = check_llama()
    if llama.problem:
        raise BadOption(llama.problem)
    gpus = [one.name for one in llama.devices if one.kind in ("gpu", "igpu")]
    wanted = names or gpus or ["CPU"]
    by_name = {one.name: one for one in llama.devices}
    llama.must_have(wanted)
    known = {one.name: one for one in known_machine(llama.devices, free_memory(), cache_folder()).devices}
    devices = []
    for name in dict.fromkeys(wanted):
        if name not in known:
            raise BadOption(f"{name} cannot be lent: it is neither a processor nor a GPU.")
        if known[name].probe is None and known[name].bandwidth is None:
            say_on_stderr(
                f"The speed of {name} is not known here: {PROGRAM} doctor measures it, for predictions there."
            )
        one = by_name[name]
        devices.append(
            Offered(
                name, one.description, known[name].kind, one.free, one.total, known[name].bandwidth, known[name].probe
            )
        )
    return Offer(tuple(devices), None if memory is None else int(memory * 2**30))


def _lend(host: str, port: int, offer: Offer, token_file: Path | None) -> None:
    from app.server.http.listening_socket import address_of, is_socket_path, listen
    from app.settings.server_settings import names_this_machine
    from app.settings.worker_tokens import own_token
    from core.remote_devices.lending import Lending

    if is_socket_path(host):
        raise BadOption(f"A worker listens on an address of the network, not on {host}.")
    token, path, is_new = own_token(token_file)
    listening = listen(host, port)
    address = f"{WORKER_SCHEME}{address_of(host) or socket.gethostname()}:{listening.getsockname()[1]}"
    print(f"This machine lends its devices as {address}")
    _show(offer.now())
    print(f"Its token{f' is {token}, kept' if is_new else ' is'} in {path}. Use the devices on the other machine with")
    print(f"  SLIPSTREAM_WORKER_TOKEN=… {PROGRAM} serve --device {address}", flush=True)
    if not names_this_machine(host):
        print(
            "Warning: whoever knows the token can use these devices, and what is computed crosses the network "
            "unencrypted, prompts and replies too. Do this only in a network that you trust.",
            file=sys.stderr,
        )
    lending = Lending(listening, token, offer, lambda sentence: print(sentence, flush=True))
    try:
        lending.run()
    except KeyboardInterrupt:
        print("The devices are this machine's own again.")
    finally:
        lending.close()
