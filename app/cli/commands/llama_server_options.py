"""Options of ``serve`` that people know from llama-server, beside our own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.chat.sampling_options import SamplingOptions
from app.cli.terminal.text import parse_size, say_on_stderr
from app.settings.server_settings import DEFAULT_MODELS
from core.values.addresses import origins_of
from core.values.engine_options import KvType, Pooling, Speculation
from core.values.errors import BadOption
from core.values.request import MAX_LORA_SCALE, ReasoningFormat

_PANEL = "As llama-server has them"


def _option(*names: str, help: str, metavar: str | None = None, low: int | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel=_PANEL)


# How files are loaded: whether they are mapped, and whether they are kept from swap.
_LOAD_MODES: dict[str, tuple[bool | None, bool]] = {
    "auto": (None, False),
    "none": (False, False),
    "mmap": (True, False),
    "dio": (False, False),
    "mlock": (False, True),
    "mmap+mlock": (True, True),
}
_EFFORTS = ("default", "none", "minimal", "low", "medium", "high", "xhigh", "max")
_NO_DRAFTS = "none"
_RANDOM_SEEDS = (-1, 2**32 - 1)


@dataclass(frozen=True, slots=True)
class LlamaServerChoice:
    """Options that llama-server has under other names, or in addition to ours."""

    ctx_size: Annotated[
        int | None, _option("--ctx-size", "-c", metavar="N", low=0, help="Context of all slots together, in tokens.")
    ] = None
    n_predict: Annotated[
        int | None,
        _option(
            "--n-predict", "-n", metavar="N", low=-1, help="Most tokens of a reply that does not say; -1: no limit."
        ),
    ] = None
    reasoning_budget: Annotated[
        int, _option("--reasoning-budget", metavar="N", low=-1, help="Most tokens of thought; -1: no limit.")
    ] = -1
    reasoning_format: Annotated[
        ReasoningFormat,
        _option("--reasoning-format", metavar="FORMAT", help="none: thoughts stay in the text; else they come apart."),
    ] = "auto"
    reasoning: Annotated[
        str, _option("--reasoning", "-rea", metavar="WHEN", help="on or off switches thoughts where the template can.")
    ] = "auto"
    reasoning_effort: Annotated[
        str, _option("--reasoning-effort", metavar="LEVEL", help="How much is thought, where the template can.")
    ] = "default"
    reasoning_preserve: Annotated[
        bool | None,
        _option(
            "--reasoning-preserve/--no-reasoning-preserve",
            help="Keep the thoughts of earlier turns in the prompt, where the template can.",
        ),
    ] = None
    chat_template: Annotated[
        str | None,
        _option(
            "--chat-template", metavar="NAME|JINJA", help="Chat template in place of the model's, as chatml or llama3."
        ),
    ] = None
    chat_template_file: Annotated[
        Path | None, _option("--chat-template-file", metavar="FILE", help="The same, from a file.")
    ] = None
    chat_template_kwargs: Annotated[
        str | None,
        _option("--chat-template-kwargs", metavar="JSON", help="Variables of the template for requests without them."),
    ] = None
    cache_type_k: Annotated[KvType | None, _option("--cache-type-k", "-ctk", metavar="TYPE", help="As --kv-type.")] = (
        None
    )
    cache_type_v: Annotated[KvType | None, _option("--cache-type-v", "-ctv", metavar="TYPE", help="As --kv-type.")] = (
        None
    )
    load_mode: Annotated[
        str | None, _option("--load-mode", "-lm", metavar="MODE", help=f"{', '.join(_LOAD_MODES)}: as --mmap, --mlock.")
    ] = None
    spec_type: Annotated[
        str | None, _option("--spec-type", metavar="KINDS", help="none is --speculation off; others change nothing.")
    ] = None
    pooling: Annotated[
        Pooling | None,
        _option("--pooling", metavar="KIND", help="Vectors of all tokens become one: none, mean, cls, last or rank."),
    ] = None
    reranking: Annotated[bool, _option("--reranking", "--rerank", help="As --pooling rank.")] = False
    hf_repo: Annotated[
        str | None,
        _option(
            "--hf-repo",
            "-hf",
            "-hfr",
            metavar="REPO[:QUANT]",
            help="Model of the Hugging Face Hub; downloaded first where it is not here.",
        ),
    ] = None
    hf_file: Annotated[
        str | None, _option("--hf-file", "-hff", metavar="FILE", help="The file of that repository to use.")
    ] = None
    hf_repo_draft: Annotated[
        str | None,
        _option(
            "--hf-repo-draft", "-hfd", "-hfrd", "--spec-draft-hf", metavar="REPO[:QUANT]", help="The same for --draft."
        ),
    ] = None
    hf_token: Annotated[
        str | None, _option("--hf-token", "-hft", metavar="TOKEN", help="Token for the Hub; better as HF_TOKEN.")
    ] = None
    offline: Annotated[bool, _option("--offline", help="Ask the Hub for nothing, as with HF_HUB_OFFLINE=1.")] = False
    alias: Annotated[
        list[str] | None,
        _option(
            "--alias",
            "-a",
            metavar="NAME[=MODEL]",
            help="Other name of the served model, or of MODEL; several with commas; can be repeated.",
        ),
    ] = None
    models_max: Annotated[
        int,
        _option(
            "--models-max", metavar="N", low=0, help="Most models that are loaded at once; 0: as many as memory holds."
        ),
    ] = DEFAULT_MODELS
    lora: Annotated[
        list[str] | None,
        _option("--lora", "--lora-scaled", metavar="FILE[:SCALE]", help="LoRA adapter of the model; can be repeated."),
    ] = None
    lora_init_without_apply: Annotated[
        bool, _option("--lora-init-without-apply", help="Let adapters count 0 until a request says otherwise.")
    ] = False
    cors_origins: Annotated[
        str | None, _option("--cors-origins", metavar="ORIGINS", help="As --cors, several with commas.")
    ] = None
    sleep_idle_seconds: Annotated[
        float | None, _option("--sleep-idle-seconds", metavar="SECONDS", help="As --idle-unload; -1: never.")
    ] = None
    slot_save_path: Annotated[
        Path | None,
        _option("--slot-save-path", metavar="FOLDER", help="Let clients save what a slot holds there, at /slots."),
    ] = None
    props: Annotated[bool, _option("--props", help="Answer POST /props, which changes nothing, as there.")] = False
    api_key_file: Annotated[
        Path | None, _option("--api-key-file", metavar="FILE", help="Keys of clients: one per line, # for comments.")
    ] = None

    def n_ctx(self, own: int | None, n_slots: int) -> int | None:
        """Return the context of one request; ``own`` is what ``--ctx`` says. Raises BadOption."""
        if not self.ctx_size:  # 0 is the model's own
            return own
        if own is not None:
            raise BadOption("--ctx is the context of one request, --ctx-size that of all slots: leave out one of them.")
        if self.ctx_size // n_slots < 16:
            raise BadOption(
                f"--ctx-size {self.ctx_size} is too small for {n_slots} slots: each needs 16 tokens or more."
            )
        return self.ctx_size // n_slots

    def kv_type(self, own: KvType | None) -> KvType | None:
        """Return the type of the KV cache; ``own`` is what ``--kv-type`` says. Raises BadOption."""
        named = {kind for kind in (own, self.cache_type_k, self.cache_type_v) if kind is not None}
        if len(named) > 1:
            raise BadOption(f"Keys and values are kept in one type here, not in {' and '.join(sorted(named))}.")
        return next(iter(named), None)

    def pooling_kind(self) -> Pooling | None:
        """Return the pooling that replaces the model's. Raises BadOption."""
        if self.reranking and self.pooling not in (None, "rank"):
            raise BadOption(f"--reranking needs --pooling rank, not {self.pooling}: leave out one of them.")
        return "rank" if self.reranking else self.pooling

    def adapters(self) -> tuple[tuple[str, float], ...]:
        """Return the files of LoRA adapters with their scales. Raises BadOption."""
        given = [one for several in self.lora or () for one in _adapters(several)]
        return tuple((path, 0.0) for path, _ in given) if self.lora_init_without_apply else tuple(given)

    def loading(self, mmap: bool | None, mlock: bool) -> tuple[bool | None, bool]:
        """Return whether files are mapped (None: if faster), and whether they are kept from swap. Raises BadOption."""
        if self.load_mode is None:
            return mmap, mlock
        if self.load_mode not in _LOAD_MODES:
            raise BadOption(f"--load-mode is one of {', '.join(_LOAD_MODES)}, not {self.load_mode!r}.")
        return _LOAD_MODES[self.load_mode]

    def speculates(self, own: Speculation) -> Speculation:
        """Return who drafts; ``own`` is what ``--speculation`` says."""
        if self.spec_type == _NO_DRAFTS:
            return "off"
        if self.spec_type is not None:
            say_on_stderr("--spec-type changes nothing here: who drafts is decided by what pays.")
        return own

    def origins(self, own: Sequence[str]) -> tuple[str, ...]:
        """Return the origins whose pages are let in; ``own`` is what ``--cors`` says. Raises BadOption."""
        return origins_of([*own, *_listed(self.cors_origins or "")])

    def idle_seconds(self, own: float | None) -> float | None:
        """Return after how long an unused model leaves memory; ``own`` is what ``--idle-unload`` says."""
        given = self.sleep_idle_seconds
        return own if given is None or given < 0 else given

    def model(self, own: str | None) -> str | None:
        """Return which model is served; ``own`` is what ``--model`` says. Downloads it where it comes from the Hub.

        Raises BadOption, and LibraryError where it cannot be downloaded.
        """
        if self.hf_token is not None:
            os.environ["HF_TOKEN"] = self.hf_token
        if self.offline:
            os.environ["HF_HUB_OFFLINE"] = "1"
        if self.hf_repo is None:
            if self.hf_file is not None:
                raise BadOption("--hf-file names a file of a repository: name that with -hf OWNER/REPOSITORY.")
            return own
        if own is not None:
            raise BadOption("--model names a model that is here and -hf one of the Hub: leave out one of them.")
        return self._from_hub(self.hf_repo, self.hf_file)

    def draft(self, own: str | None) -> str | None:
        """Return which model drafts; ``own`` is what ``--draft`` says. As ``model``."""
        if self.hf_repo_draft is None:
            return own
        if own is not None:
            raise BadOption("--draft names a model that is here and -hfd one of the Hub: leave out one of them.")
        return self._from_hub(self.hf_repo_draft)

    def _from_hub(self, repo: str, file: str | None = None) -> str:
        from app.cli.models.pull import download
        from app.library.find_model import downloaded_from
        from models.download.model_download import DownloadRequest

        repo_id, _, wanted = repo.partition(":")
        wanted = file or wanted
        entry = downloaded_from(repo_id, wanted)
        return str(entry.path if entry is not None else download(DownloadRequest(repo_id, wanted)).files[0])

    def aliases(self) -> tuple[tuple[str, str], ...]:
        """Return each alias with the name of its model, "" for the served one. Raises BadOption."""
        found: dict[str, str] = {}
        for given in self.alias or ():
            names, _, model = given.partition("=")
            for name in map(str.strip, names.split(",")):
                if not name or name in found:
                    what = f"{name!r} twice" if name else "an empty name"
                    raise BadOption(f"--alias {given}: it has {what}.")
                found[name] = model.strip()
        return tuple(found.items())

    def api_keys(self, own: Sequence[str]) -> tuple[str, ...]:
        """Return all keys; ``own`` is what ``--api-key`` says. Raises BadOption, whose sentence shows no key."""
        if any("," in key for key in own):
            say_on_stderr("--api-key with a comma is one key here: repeat the option for several.")
        if not all(map(_can_be_sent, own)):
            raise BadOption("--api-key: a key has at least one character, and only ASCII letters, digits and signs.")
        if self.api_key_file is None:
            return tuple(own)
        named = f"The file of API keys {self.api_key_file}"
        lines = [line.strip() for line in _text_of(self.api_key_file, named).splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise BadOption(f"{named} has no key: write one per line.")
        for number, line in enumerate(lines, start=1):
            if line in keys and not _can_be_sent(line):
                raise BadOption(f"{named}: the key in line {number} may have ASCII letters, digits and signs only.")
        return (*own, *keys)

    def template(self) -> str | None:
        """Return the chat template that replaces the model's. Raises BadOption."""
        if self.chat_template is not None and self.chat_template_file is not None:
            raise BadOption("--chat-template and --chat-template-file both give one: leave out one of them.")
        if self.chat_template_file is not None:
            source = _text_of(self.chat_template_file, f"The chat template {self.chat_template_file}")
            return self._tried(source, f"--chat-template-file, {self.chat_template_file},")
        if self.chat_template is None:
            return None
        from app.server.templates.builtin_templates import BUILTIN_TEMPLATES

        if (named := BUILTIN_TEMPLATES.get(self.chat_template.strip())) is not None:
            return named
        if "{" not in self.chat_template:
            raise BadOption(
                f"--chat-template knows no template called {self.chat_template[:40]!r}. It takes jinja text, or one of "
                f"these names: {', '.join(BUILTIN_TEMPLATES)}."
            )
        return self._tried(self.chat_template, "--chat-template")

    def _tried(self, source: str, option: str) -> str:
        """Return a template with which chats can be written. Raises BadOption."""
        from app.server.templates.chat_template import template_problem

        if (problem := asyncio.run(template_problem(source, self.template_variables()))) is not None:
            raise BadOption(f"The template of {option} cannot be used: {problem}.")
        return source

    @property
    def thinking_budget(self) -> int:
        """The most tokens of thought; -1 for any number."""
        return 0 if self.reasoning == "off" or self.reasoning_effort == "none" else self.reasoning_budget

    def template_variables(self) -> dict[str, Any]:
        """Return what the template reads besides. Raises BadOption."""
        try:
            found = json.loads(self.chat_template_kwargs or "{}")
        except ValueError as error:
            raise BadOption(f"--chat-template-kwargs is no JSON: {error}.") from None
        if not isinstance(found, dict):
            raise BadOption('--chat-template-kwargs must be a JSON object, as {"enable_thinking": false}.')
        return self._about_thoughts() | found

    def _about_thoughts(self) -> dict[str, Any]:
        """Return what templates read about thoughts. Raises BadOption."""
        if self.reasoning not in ("on", "off", "auto"):
            raise BadOption(f"--reasoning is on, off or auto, not {self.reasoning!r}.")
        if self.reasoning_effort not in _EFFORTS:
            raise BadOption(f"--reasoning-effort is one of {', '.join(_EFFORTS)}, not {self.reasoning_effort!r}.")
        is_off = self.thinking_budget == 0
        found: dict[str, Any] = {}
        if is_off or self.reasoning == "on":
            found |= {"enable_thinking": not is_off, "thinking": not is_off}
        if self.reasoning_effort not in ("default", "none"):
            found["reasoning_effort"] = self.reasoning_effort
        if self.reasoning_preserve is not None:
            found["preserve_reasoning"] = self.reasoning_preserve
        return found


def _can_be_sent(key: str) -> bool:
    """Return whether a header can carry an API key."""
    return bool(key) and key.isascii() and key.isprintable() and " " not in key


def _text_of(path: Path, named: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadOption(f"{named} cannot be read: {reason}.") from None


def defaults_of(sampling: SamplingOptions) -> dict[str, Any]:
    """Return what requests get that say nothing, by the fields of their bodies. Raises BadRequest."""
    found = sampling.fields()
    return {name: value for name, value in found.items() if not (name == "seed" and value in _RANDOM_SEEDS)}


def devices_of(given: Sequence[str]) -> tuple[str, ...] | None:
    """Return the devices that are named, several with commas; None for "none", which is the processor alone."""
    named = tuple(name for one in given for name in _listed(one))
    return None if named == ("none",) else named


def cache_ram_bytes(given: str | None) -> int | None:
    """Return the bytes that ``--cache-ram`` names: of a plain number, which are MiB as at llama-server. -1: no limit.

    Raises BadOption.
    """
    if given is None or given.strip() == "-1":
        return None
    return parse_size(f"{given.strip()}M" if given.strip().isdecimal() else given, "--cache-ram")


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _adapters(given: str) -> list[tuple[str, float]]:
    """Return files and scales of one or several adapters with commas between; a file may have one in its name."""
    is_one = os.path.isfile(given) or os.path.isfile(given.rpartition(":")[0])
    return [_adapter(given)] if is_one else [_adapter(one) for one in _listed(given) or [given]]


def _adapter(given: str) -> tuple[str, float]:
    """Return file and scale of ``FILE[:SCALE]``; a file may have a colon in its name."""
    path, colon, scale = given.rpartition(":")
    if not colon or os.path.isfile(given):
        path, scale = given, "1"
    try:
        number = float(scale)
    except ValueError:
        path, number = given, 1.0
    if not abs(number) <= MAX_LORA_SCALE:
        raise BadOption(f"--lora {given}: the scale must be a number up to {MAX_LORA_SCALE:,.0f}, as 0.5.")
    if not os.path.isfile(path):
        raise BadOption(f"--lora names {path}, which is no file.")
    return str(Path(path).absolute()), number
