"""Options of ``serve`` that people know from llama-server, beside our own."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.settings.server_settings import DEFAULT_MODELS
from core.values.engine_options import KvType, Pooling
from core.values.errors import BadOption
from core.values.request import ReasoningFormat

_PANEL = "As llama-server has them"


def _option(*names: str, help: str, metavar: str | None = None, low: int | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel=_PANEL)


def _ignored(*names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, hidden=True)


# Switches that change nothing here, with the reason in a sentence.
_WORDS = {
    "embeddings": "--embeddings changes nothing here: /v1/embeddings is always there.",
    "jinja": "--jinja changes nothing here: templates are always rendered by jinja.",
    "metrics": "--metrics changes nothing here: /metrics is always there.",
    "slots": "--slots changes nothing here: /slots is always there.",
    "props": "--props changes nothing here: no property can be changed while the server runs.",
    "slot_save_path": "--slot-save-path changes nothing here: prompts are kept on disk by themselves (--cache-disk).",
    "cont_batching": "--cont-batching changes nothing here: requests always share steps.",
    "cache_reuse": "--cache-reuse changes nothing here: the longest beginning that is known is reused.",
    "no_webui": "--no-webui changes nothing here: the endpoint has no page.",
    "n_batch": "--batch-size changes nothing here: the size of a step is chosen by its measured time.",
    "n_ubatch": "--ubatch-size changes nothing here: the size of a step is chosen by its measured time.",
}


@dataclass(frozen=True, slots=True)
class LlamaServerChoice:
    """What llama-server calls otherwise or has besides."""

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
        int,
        _option(
            "--reasoning-budget",
            metavar="N",
            low=-1,
            help="Most tokens of thought; -1: no limit.",
        ),
    ] = -1
    reasoning_format: Annotated[
        ReasoningFormat,
        _option("--reasoning-format", metavar="FORMAT", help="none leaves thoughts in the text; else they come apart."),
    ] = "auto"
    chat_template: Annotated[
        str | None, _option("--chat-template", metavar="JINJA", help="Chat template in place of the model's.")
    ] = None
    chat_template_file: Annotated[
        Path | None, _option("--chat-template-file", metavar="FILE", help="The same, from a file.")
    ] = None
    chat_template_kwargs: Annotated[
        str | None,
        _option("--chat-template-kwargs", metavar="JSON", help="What the template reads where a request does not say."),
    ] = None
    cache_type_k: Annotated[KvType | None, _option("--cache-type-k", "-ctk", metavar="TYPE", help="As --kv-type.")] = (
        None
    )
    cache_type_v: Annotated[KvType | None, _option("--cache-type-v", "-ctv", metavar="TYPE", help="As --kv-type.")] = (
        None
    )
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
        int, _option("--models-max", metavar="N", low=1, help="Most models that are loaded at once, memory allowing.")
    ] = DEFAULT_MODELS
    lora: Annotated[
        list[str] | None,
        _option("--lora", "--lora-scaled", metavar="FILE[:SCALE]", help="LoRA adapter of the model; can be repeated."),
    ] = None
    api_key_file: Annotated[
        Path | None,
        _option("--api-key-file", metavar="FILE", help="Keys of clients: one per line, # for comments."),
    ] = None
    embeddings: Annotated[bool, _ignored("--embeddings", "--embedding")] = False
    jinja: Annotated[bool, _ignored("--jinja")] = False
    metrics: Annotated[bool, _ignored("--metrics")] = False
    slots: Annotated[bool, _ignored("--slots")] = False
    props: Annotated[bool, _ignored("--props")] = False
    slot_save_path: Annotated[str | None, _ignored("--slot-save-path", metavar="PATH")] = None
    cont_batching: Annotated[bool, _ignored("--cont-batching", "-cb")] = False
    cache_reuse: Annotated[int | None, _ignored("--cache-reuse", metavar="N")] = None
    no_webui: Annotated[bool, _ignored("--no-webui")] = False
    n_batch: Annotated[int | None, _ignored("--batch-size", "-b", metavar="N")] = None
    n_ubatch: Annotated[int | None, _ignored("--ubatch-size", "-ub", metavar="N")] = None

    @property
    def words(self) -> list[str]:
        """A sentence for each switch that was given and changes nothing."""
        return [sentence for name, sentence in _WORDS.items() if getattr(self, name) not in (None, False)]

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
        return tuple(_adapter(given) for given in self.lora or ())

    def model(self, own: str | None) -> str | None:
        """Return which model is served; ``own`` is what ``--model`` says. Downloads it where it comes from the Hub.

        Raises BadOption, and LibraryError where it cannot be downloaded.
        """
        if self.hf_repo is None:
            return own
        if own is not None:
            raise BadOption("--model names a model that is here and -hf one of the Hub: leave out one of them.")
        from app.cli.models.pull import download
        from app.library.find_model import downloaded_from
        from models.download.model_download import DownloadRequest

        repo_id, _, wanted = self.hf_repo.partition(":")
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
        if self.api_key_file is None:
            return tuple(own)
        named = f"The file of API keys {self.api_key_file}"
        lines = [line.strip() for line in _text_of(self.api_key_file, named).splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise BadOption(f"{named} has no key: write one per line.")
        for number, line in enumerate(lines, start=1):
            if line in keys and not (line.isascii() and line.isprintable() and " " not in line):
                raise BadOption(f"{named}: the key in line {number} may have ASCII letters, digits and signs only.")
        return (*own, *keys)

    def template(self) -> str | None:
        """Return the chat template that replaces the model's. Raises BadOption."""
        if self.chat_template is not None and self.chat_template_file is not None:
            raise BadOption("--chat-template and --chat-template-file both give one: leave out one of them.")
        if self.chat_template_file is not None:
            return _text_of(self.chat_template_file, f"The chat template {self.chat_template_file}")
        if self.chat_template is not None and "{" not in self.chat_template:
            raise BadOption(
                f"--chat-template takes the template itself, not a name as {self.chat_template[:40]!r}: "
                "give jinja text, or a file with --chat-template-file."
            )
        return self.chat_template

    def template_variables(self) -> dict[str, Any]:
        """Return what the template reads besides. Raises BadOption."""
        try:
            found = json.loads(self.chat_template_kwargs or "{}")
        except ValueError as error:
            raise BadOption(f"--chat-template-kwargs is no JSON: {error}.") from None
        if isinstance(found, dict) and self.reasoning_budget == 0:
            found = {"enable_thinking": False, "thinking": False} | found
        if not isinstance(found, dict):
            raise BadOption('--chat-template-kwargs must be a JSON object, as {"enable_thinking": false}.')
        return found


def _text_of(path: Path, named: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadOption(f"{named} cannot be read: {reason}.") from None


def _adapter(given: str) -> tuple[str, float]:
    """Return file and scale of ``FILE[:SCALE]``; a file may have a colon in its name."""
    path, colon, scale = given.rpartition(":")
    if not colon or Path(given).is_file():
        path, scale = given, "1"
    try:
        number = float(scale)
    except ValueError:
        path, number = given, 1.0
    if not math.isfinite(number):
        raise BadOption(f"--lora {given}: the scale must be a number, as 0.5.")
    if not Path(path).is_file():
        raise BadOption(f"--lora names {path}, which is no file.")
    return str(Path(path).absolute()), number
