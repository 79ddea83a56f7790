"""How a server is set up: a frozen value, from the command line or the window."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.settings.worker_tokens import tokens_for
from core.values.engine_options import EngineOptions
from core.values.errors import BadOption
from core.values.model_settings import ModelSettings
from core.values.request import ReasoningFormat
from models.formatting.program import PROGRAM

DEFAULT_HOST = "127.0.0.1"
DEFAULT_MODELS = 4  # as many as llama-server's router holds
DEFAULT_PORT = 8642
_RECOMMENDED = ModelSettings()
USUAL_ENGINE = EngineOptions("any", cache_disk=None)
"""The engine's options where nothing is said; a model's file takes the place of ``any``."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one server. ``engine`` are the options with which it loads a model, whichever that is.

    ``hosts`` are addresses to listen on, or paths of Unix sockets. ``port`` 0 takes any free port.
    ``model`` is a catalogued name, a title or a path of a GGUF file; None is the bundled starter model, or with
    ``last_model`` the one that was chosen last. ``draft`` names the model that drafts for it, in the same way; without
    one, a partner is found for each model that is loaded, unless ``uses_draft`` is False, and then no heads draft
    either. ``mmproj`` is the projector of that model; without one, what lies beside a model is used, unless
    ``uses_projector`` is False. Images in the web are fetched if ``allows_remote_images``. ``sampling`` is what
    requests get that do not say, by the fields of their bodies; it goes before the settings of a model. ``n_predict``
    bounds the tokens of a reply that does not say its limit, ``reasoning_budget`` those of its thoughts (-1: any
    number), which are part of its text where ``reasoning_format`` is none. ``template_variables`` are what a template
    reads unless a request says otherwise. ``strict_models`` refuses names that no model has, which the chosen one
    answers otherwise. With ``on_demand`` the first model is loaded by the first request that needs it. A model that
    answered nobody for ``idle_unload`` seconds leaves memory until the next call (None: never). At most ``models_max``
    are loaded at once. ``aliases`` are other names of models, "" that of the start. ``lora`` are LoRA adapters of the
    first model that is loaded, each with its scale. ``allowed_hosts`` are names that requests may give this server
    besides its own; ``cors`` origins of web pages that may use it. What slots hold may be saved to the folder
    ``slot_save_path`` and restored from there. ``allows_props`` lets clients ask for a change of properties.
    ``announce`` prints one line with the address once connections are accepted. ``exit_with_stdin`` ends the server
    when its standard input reaches its end.
    """

    hosts: tuple[str, ...] = (DEFAULT_HOST,)
    port: int = DEFAULT_PORT
    model: str | None = None
    last_model: bool = False
    engine: EngineOptions = USUAL_ENGINE
    draft: str | None = None
    uses_draft: bool = True
    mmproj: str | None = None
    uses_projector: bool = True
    allows_remote_images: bool = False
    sampling: Mapping[str, Any] = field(default_factory=dict)
    n_predict: int | None = None
    reasoning_budget: int = -1
    reasoning_format: ReasoningFormat = "auto"
    template_variables: Mapping[str, Any] = field(default_factory=dict)
    strict_models: bool = False
    allowed_hosts: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    slot_save_path: Path | None = None
    allows_props: bool = False
    on_demand: bool = False
    idle_unload: float | None = None
    models_max: int = DEFAULT_MODELS
    aliases: tuple[tuple[str, str], ...] = ()
    lora: tuple[tuple[str, float], ...] = ()
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    has_named_keys: bool = False
    announce: bool = False
    exit_with_stdin: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise BadOption(f"The port must be between 0 and 65535, not {self.port}.")
        if self.idle_unload is not None and not self.idle_unload > 0:
            raise BadOption(f"--idle-unload takes seconds above 0, not {self.idle_unload:g}; left out, models stay.")
        if self.models_max < 1:
            raise BadOption(f"--models-max must be 1 or more, not {self.models_max}.")
        if not all(self.hosts):
            raise BadOption("The host is empty: use 127.0.0.1 to serve this machine only.")
        if not all(key.strip() for key in self.api_keys):
            raise BadOption("The API key is empty: give it at least one character, or leave it out.")
        if not self.is_loopback and not self.api_keys and not self.has_named_keys:
            open_host = next(host for host in self.hosts if not names_this_machine(host))
            raise BadOption(
                f"Serving on {open_host} lets other machines use this model, so it needs an API key: "
                f"make one with `{PROGRAM} keys add NAME`, or serve this machine only with --host 127.0.0.1."
            )
        if self.slot_save_path is not None and not os.path.isdir(self.slot_save_path):
            raise BadOption(f"--slot-save-path names {self.slot_save_path}, which is no folder: make it first.")
        if self.model is not None and self.last_model:
            raise BadOption("--model names a model and --last-model takes the one chosen last: leave out one of them.")
        if self.draft is not None and not self.uses_draft:
            raise BadOption("--draft names a draft model and --no-draft wants none: leave out one of them.")
        if self.mmproj is not None and not self.uses_projector:
            raise BadOption("--mmproj names a projector and --no-mmproj wants none: leave out one of them.")

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        return all(map(names_this_machine, self.hosts))

    @property
    def drafts(self) -> bool:
        """True unless the server was started to draft nothing."""
        return self.uses_draft and self.engine.speculation != "off"

    def engine_options(self, model_path: str, own: ModelSettings = _RECOMMENDED) -> EngineOptions:
        """Return the engine's options for a model file, without its draft model and projector; raises BadOption.

        ``own`` are the settings of that model: they stand where this server was started without the option.
        """
        engine = self.engine
        return replace(
            engine,
            model_path=model_path,
            n_ctx=_first(engine.n_ctx, own.ctx),
            n_threads=_first(engine.n_threads, own.threads),
            n_gpu_layers=_first(engine.n_gpu_layers, own.gpu_layers),
            kv_type=engine.kv_type or own.kv_type,
            also_worker=own.worker,
            worker_tokens=self._tokens_with(own.worker),
            uses_heads=self.uses_draft,
        )

    def _tokens_with(self, worker: str | None) -> tuple[tuple[str, str], ...]:
        known = self.engine.worker_tokens
        is_missing = worker is not None and worker not in dict(known)
        return (*known, *tokens_for((worker,))) if worker is not None and is_missing else known


def _first(given: int | None, own: int | None) -> int | None:
    return own if given is None else given


def names_this_machine(host: str) -> bool:
    """Whether only this machine can connect to ``host``."""
    if host.lower() == "localhost" or "/" in host:  # a Unix socket belongs to this machine
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
