"""``slipstream serve``: the OpenAI-style endpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from app.cli.chat.sampling_options import SamplingOptions
from app.cli.commands.llama_server_options import LlamaServerChoice, cache_ram_bytes, defaults_of, devices_of
from app.cli.commands.llama_server_switches import ServeCommand
from app.cli.terminal.option_group import with_groups
from core.values.addresses import host_of, is_worker, worker_address
from core.values.engine_options import (
    DEFAULT_SLOTS,
    MAX_LAYERS,
    MAX_SLOTS,
    EngineOptions,
    FlashAttention,
    KvType,
    Speculation,
)
from core.values.errors import BadOption
from models.formatting.program import IN_WINDOW

Command = ServeCommand
_KV_TYPES = get_args(KvType)
MANY_MODELS = 1_000  # as many as memory holds


def _option(*names: str, help: str, metavar: str | None = None, low: int | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel="Engine")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """How the engine is set up; None is chosen for this machine."""

    n_ctx: Annotated[int | None, _option("--ctx", metavar="N", low=16, help="Context of one request in tokens.")] = None
    n_threads: Annotated[int | None, _option("--threads", "-t", metavar="N", low=-1, help="CPU threads.")] = None
    n_gpu_layers: Annotated[
        str | None,
        _option(
            "--gpu-layers",
            "--n-gpu-layers",
            "-ngl",
            metavar="N",
            help="Layers on the GPU, or all of them; what fits if left out.",
        ),
    ] = None
    n_cpu_moe: Annotated[
        int | None,
        _option(
            "--cpu-moe",
            "--n-cpu-moe",
            "-ncmoe",
            metavar="N",
            low=0,
            help="Keep the experts of the first N layers on the processor; of those that must if left out.",
        ),
    ] = None
    flash_attention: Annotated[
        FlashAttention, _option("--flash-attention", "--flash-attn", "-fa", help="Flash attention.")
    ] = "auto"
    kv_type: Annotated[
        KvType | None,
        _option("--kv-type", metavar="TYPE", help=f"KV cache: {', '.join(_KV_TYPES)}; f16 or what fits if left out."),
    ] = None
    mmap: Annotated[
        bool | None,
        _option("--mmap/--no-mmap", help="Map the file into memory instead of reading it; the faster way if left out."),
    ] = None
    mlock: Annotated[bool, _option("--mlock", help="Keep the model in memory, never in swap.")] = False
    draft: Annotated[
        str | None,
        _option(
            "--draft",
            "--model-draft",
            "-md",
            metavar="NAME",
            help="Small model of the same vocabulary, EAGLE-3 or DFlash head; found by itself if left out.",
        ),
    ] = None
    mmproj: Annotated[
        str | None,
        _option(
            "--mmproj",
            "-mm",
            metavar="FILE",
            help="Projector, with which the model sees images; found beside the model if left out.",
        ),
    ] = None
    no_mmproj: Annotated[bool, _option("--no-mmproj", help="Load no projector: images are refused.")] = False
    no_draft: Annotated[bool, _option("--no-draft", help="Let no small model and no heads draft.")] = False
    speculation: Annotated[
        Speculation, _option("--speculation", help="Draft where it pays; off never drafts, draft: without lookups.")
    ] = "auto"
    cache_ram: Annotated[
        str | None,
        _option("--cache-ram", metavar="SIZE", help="Memory that keeps texts to go on from, as 4G, or in MiB."),
    ] = None
    cache_disk: Annotated[
        str | None, _option("--cache-disk", metavar="SIZE", help="Disk space for the same, as 8G; 0 writes nothing.")
    ] = None
    no_calibration: Annotated[
        bool, _option("--no-calibration", help="Measure nothing while a model is loaded: learn from what it then does.")
    ] = False
    devices: Annotated[
        list[str] | None,
        _option(
            "--device",
            metavar="NAME",
            help="Use this device, as doctor names it, or those of a worker, as rpc://HOST:PORT; may be repeated.",
        ),
    ] = None
    worker_token_file: Annotated[
        Path | None, _option("--worker-token-file", metavar="FILE", help="File with the token of the workers.")
    ] = None

    @property
    def layers(self) -> int | None:
        """Layers on GPUs, None for what fits. Raises BadOption."""
        given = self.n_gpu_layers
        if given in (None, "auto", "-1"):
            return None
        if given in ("all", "-2"):
            return MAX_LAYERS
        if not (given.isascii() and given.isdigit()):
            raise BadOption(f"--gpu-layers takes a number of layers, all, or auto, not {given[:40]!r}.")
        return int(given)


@with_groups
def serve(
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Address or Unix socket to listen on; may be given more than once."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help="Port; 0 takes any free one.")] = 8642,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="NAME", help="Name, title or path of a model; the bundled one if left out."
        ),
    ] = None,
    last_model: Annotated[
        bool, typer.Option("--last-model", help="Begin with the model that was chosen last, where it is still there.")
    ] = False,
    parallel: Annotated[
        int, typer.Option("--parallel", "-np", min=-1, max=MAX_SLOTS, metavar="N", help="Requests that run at once.")
    ] = DEFAULT_SLOTS,
    strict_models: Annotated[
        bool, typer.Option("--strict-models", help="Refuse names that no model has; else the chosen one answers them.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Name that clients reach this server by; may be repeated.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Web pages of this origin may use the server; * for all; may be repeated."),
    ] = None,
    idle_unload: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Free the memory of a model that answered nobody for so long; the next request loads it again.",
        ),
    ] = None,
    on_demand: Annotated[bool, typer.Option("--on-demand", help="Load no model before a request needs it.")] = False,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            help="Clients must send this key, or one of `keys add`; may be repeated.",
            metavar="KEY",
            envvar="SLIPSTREAM_API_KEY",
        ),
    ] = None,
    allow_remote_images: Annotated[
        bool, typer.Option("--allow-remote-images", help="Fetch images that requests name by their address in the web.")
    ] = False,
    announce: Annotated[
        bool, typer.Option("--announce", help="Print one line, SLIPSTREAM READY and the address, when it listens.")
    ] = False,
    exit_with_stdin: Annotated[
        bool, typer.Option("--exit-with-stdin", help="Leave when standard input ends: a server for one caller.")
    ] = False,
    *,
    engine: EngineChoice,
    sampling: SamplingOptions,
    llama_server: LlamaServerChoice,
) -> None:
    """Serve an OpenAI-style endpoint for editors and scripts.

    Clients use the address with /v1 behind it, as http://127.0.0.1:8642/v1, and any name that `models list` shows.
    The options of sampling are for requests that say nothing of it. What llama-server has besides is taken where it
    changes nothing here, and refused where it would.
    """
    from app.settings.api_keys import KeyStore
    from app.settings.server_settings import DEFAULT_HOST, ServerSettings

    hosts = [one for several in host or () for one in several.split(",")] or [DEFAULT_HOST]
    keys = llama_server.api_keys(api_key or ())
    options = _engine_options(engine, llama_server, parallel if parallel > 0 else DEFAULT_SLOTS)
    named_keys = KeyStore()
    if not keys and not os.environ.get(IN_WINDOW):  # the window has a key of its own
        named_keys.all()  # raises where the file cannot be read: then nobody would be let in
    settings = ServerSettings(
        hosts=tuple(map(str.strip, hosts)),
        port=port,
        model=llama_server.model(model),
        last_model=last_model,
        engine=options,
        draft=llama_server.draft(engine.draft),
        uses_draft=not engine.no_draft,
        mmproj=engine.mmproj,
        uses_projector=not engine.no_mmproj,
        allows_remote_images=allow_remote_images,
        sampling=defaults_of(sampling),
        n_predict=None if llama_server.n_predict == -1 else llama_server.n_predict,
        reasoning_budget=llama_server.thinking_budget,
        reasoning_format=llama_server.reasoning_format,
        template_variables=llama_server.template_variables(),
        strict_models=strict_models,
        allowed_hosts=tuple(map(host_of, allow_host or ())),
        cors=llama_server.origins(cors or ()),
        slot_save_path=llama_server.slot_save_path,
        allows_props=llama_server.props,
        idle_unload=llama_server.idle_seconds(idle_unload),
        on_demand=on_demand,
        models_max=llama_server.models_max or MANY_MODELS,
        aliases=llama_server.aliases(),
        lora=llama_server.adapters(),
        api_keys=keys,
        has_named_keys=not named_keys.is_empty,
        announce=announce,
        exit_with_stdin=exit_with_stdin,
    )
    from app.server.main import run_server

    raise typer.Exit(run_server(settings))


def _engine_options(engine: EngineChoice, llama_server: LlamaServerChoice, n_slots: int) -> EngineOptions:
    """Return the engine's options but for the model. Raises BadOption, and refuses a device that is not there."""
    from app.cli.terminal.text import parse_size
    from app.settings.server_settings import USUAL_ENGINE
    from app.settings.worker_tokens import tokens_for

    mmap, mlock = llama_server.loading(engine.mmap, engine.mlock)
    devices = devices_of(engine.devices or ())
    _check_devices(devices or ())
    return replace(
        USUAL_ENGINE,
        n_slots=n_slots,
        n_ctx=llama_server.n_ctx(engine.n_ctx, n_slots),
        n_threads=engine.n_threads if (engine.n_threads or 0) > 0 else None,
        n_gpu_layers=0 if devices is None else engine.layers,
        n_cpu_moe=engine.n_cpu_moe,
        flash_attention=engine.flash_attention,
        kv_type=llama_server.kv_type(engine.kv_type),
        mmap=mmap,
        mlock=mlock,
        speculation=llama_server.speculates(engine.speculation),
        cache_ram=cache_ram_bytes(engine.cache_ram),
        cache_disk=None if engine.cache_disk is None else parse_size(engine.cache_disk, "--cache-disk"),
        calibrates=not engine.no_calibration,
        devices=devices or (),
        worker_tokens=tokens_for(devices or (), engine.worker_token_file),
        chat_template=llama_server.template(),
        pooling=llama_server.pooling_kind(),
    )


def _check_devices(names: Sequence[str]) -> None:
    """Refuse a device that is not there before anything is begun; the window's server stays, to be set otherwise."""
    for name in filter(is_worker, names):
        worker_address(name)
    own = [name for name in names if not is_worker(name)]
    if not own or os.environ.get(IN_WINDOW):
        return
    from app.doctor.checks import check_llama

    if (llama := check_llama()).problem is None:
        llama.must_have(own)
