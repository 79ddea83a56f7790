"""Options of llama-server that ``serve`` takes without effect, and those that it refuses with what to do instead.

Those that mean something here are in ``serve.py`` and ``llama_server_options.py``. Together they are all that
llama-server lists, and a few that older ones had.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from app.cli.commands.llama_server_variables import Given, given_by, names_of, with_variables
from app.cli.terminal.text import say_on_stderr
from core.values.engine_options import MAX_LAYERS
from core.values.errors import BadOption, BadRequest
from models.formatting.program import PROGRAM


@dataclass(frozen=True, slots=True)
class LlamaServerSwitch:
    """An option under each of its ``names``. ``metavar`` stands for its value, "" where it has none.

    ``why`` goes on with "changes nothing here" where it ``is_taken``, else it says what to do instead. Of one that is
    refused, the values ``same`` ask for what happens anyway.
    """

    names: tuple[str, ...]
    metavar: str
    why: str
    is_taken: bool
    same: tuple[str, ...] = ()

    def met(self, name: str, value: str) -> None:
        """Say that it changes nothing; raises BadOption where it would."""
        if self.is_taken:
            say_on_stderr(f"{name} changes nothing here: {self.why}.")
        elif value in self.same:
            say_on_stderr(f"{name} {value} changes nothing here: it is so anyway.")
        else:
            raise BadOption(f"{name} is llama-server's and not followed here: {self.why}.")


def _taken(names: str, why: str, metavar: str = "") -> LlamaServerSwitch:
    return LlamaServerSwitch(tuple(names.split()), metavar, why, is_taken=True)


def _refused(names: str, instead: str, metavar: str = "", same: tuple[str, ...] = ()) -> LlamaServerSwitch:
    return LlamaServerSwitch(tuple(names.split()), metavar, instead, is_taken=False, same=same)


_PINNING = "start the server under taskset, which binds it to processors"
_POSITIONS = "choose a model that was made for long texts: its file says how positions are counted"
_STEPS = "the size of a step is chosen by its measured time"
_DRAFTS = "each step decides how much is drafted, by what is faster"
_LOOKUPS = "lookups search the requests' own texts, and each step decides how long they are"
_WITH_MODEL = "the draft model is placed beside the model, where it fits"
_LOG = f"the log says what matters, and `{PROGRAM} doctor` names its folder"
_NO_PAGE = "the endpoint has no web page: the desktop app has the chat"
_TOOLS = "programs run their tools themselves, and the window's chat has those of MCP servers"
_MODEL = "name it with -hf OWNER/REPOSITORY:QUANTISATION"
_VECTORS = "control vectors are not supported: write what is wanted into the system prompt"
_PROXY = "put a proxy in front of the server, as caddy or nginx"
_FIT = "what fits is always computed from the free memory"

SWITCHES = (
    # Things that happen anyway, or that are chosen by measurement.
    _taken("--embedding --embeddings", "/v1/embeddings is always there"),
    _taken("--jinja", "templates are always rendered by jinja"),
    _taken("--metrics", "/metrics is always there"),
    _taken("--slots --no-slots", "/slots is always there and shows no text of a request"),
    _taken("--cont-batching -cb --no-cont-batching -nocb", "requests always share steps, up to --parallel of them"),
    _taken("--cache-reuse", "the longest known prefix is reused", "N"),
    _taken("--cache-prompt --no-cache-prompt", "prompts are kept as far as --cache-ram and --cache-disk allow"),
    _taken("--cache-idle-slots --no-cache-idle-slots", "prompts are kept as far as --cache-ram allows"),
    _taken("--ctx-checkpoints --swa-checkpoints -ctxcp", "states to go back to are kept as memory allows", "N"),
    _taken("--checkpoint-min-step -cms", "states to go back to are kept where they save time", "N"),
    _taken("--slot-prompt-similarity -sps", "a request reuses the longest prefix that is known", "N"),
    _taken("--kv-unified -kvu --no-kv-unified -no-kvu", "all requests share one cache, each with a context of its own"),
    _taken("--swa-full", "a sliding window keeps as much as the next turn needs"),
    _taken("--defrag-thold -dt", "llama.cpp no longer needs it", "N"),
    _taken("--batch-size -b", _STEPS, "N"),
    _taken("--ubatch-size -ub", _STEPS, "N"),
    _taken("--mtmd-batch-max-tokens", _STEPS, "N"),
    _taken("--threads-batch -tb", "prompts are read with --threads, or with what the machine has free", "N"),
    _taken("--poll", "how threads wait was chosen by measurement", "N"),
    _taken("--poll-batch", "how threads wait was chosen by measurement", "N"),
    _taken("--prio", "the system's own priority is kept: start the server under nice for another", "N"),
    _taken("--prio-batch", "the system's own priority is kept: start the server under nice for another", "N"),
    _taken("--repack", "weights are always repacked for the processor's kernels"),
    _taken("--kv-offload -kvo", "the cache lies where its layers are"),
    _taken("--op-offload", "large steps are computed on the GPU where there is one"),
    _taken("--mmproj-auto", "a projector beside the model is found"),
    _taken("--mmproj-offload", "images are encoded on the GPU where there is one"),
    _taken("--warmup --no-warmup", "what is measured at the start is switched off with --no-calibration"),
    _taken("--direct-io -dio --no-direct-io -ndio", "files are mapped, or read with --no-mmap"),
    _taken("--perf --no-perf", "times are always measured, and in each reply's timings"),
    _taken("--escape -e --no-escape", "prompts come in requests, as JSON"),
    _taken("--keep", "a text that is too long is refused and not shifted", "N"),
    _taken("--no-context-shift", "a text that is too long is refused and not shifted"),
    _taken("--prefill-assistant", "a last message of the assistant's is continued"),
    _taken("--models-autoload", "a model that a request names is loaded"),
    _taken("--tags", "tags are not shown anywhere", "TEXT"),
    _taken("--timeout -to", "replies have no time limit; docs/endpoint.md lists the limits there are", "N"),
    _taken("--sse-ping-interval", "a stream that waits gets a comment every 15 seconds", "N"),
    _taken("--threads-http", "one thread serves all connections", "N"),
    _taken("--no-webui --no-ui --webui --ui", _NO_PAGE),
    _taken("--webui-config --ui-config", _NO_PAGE, "JSON"),
    _taken("--webui-config-file --ui-config-file", _NO_PAGE, "PATH"),
    _taken("--no-webui-mcp-proxy --no-ui-mcp-proxy", _NO_PAGE),
    _taken("--no-agent -no-ag", _TOOLS),
    _taken("--log-disable", _LOG),
    _taken("--log-file", _LOG, "FILE"),
    _taken("--log-jsonl --no-log-jsonl", _LOG),
    _taken("--log-colors", _LOG, "WHEN"),
    _taken("--log-prefix --no-log-prefix", _LOG),
    _taken("--log-timestamps --no-log-timestamps", _LOG),
    _taken("--verbose -v --log-verbose", _LOG),
    _taken("--verbosity -lv --log-verbosity", _LOG, "N"),
    _taken("--fit-target -fitt", _FIT, "MIB"),
    _taken("--fit-ctx -fitc", _FIT, "N"),
    # Drafting.
    _taken("--spec-default", _DRAFTS),
    _taken("--draft-max --draft-n --spec-draft-n-max", _DRAFTS, "N"),
    _taken("--draft-min --draft-n-min --spec-draft-n-min", _DRAFTS, "N"),
    _taken("--draft-p-split --spec-draft-p-split", _DRAFTS, "P"),
    _taken("--draft-p-min --spec-draft-p-min", _DRAFTS, "P"),
    _taken("--lookup-cache-static -lcs", _LOOKUPS, "FILE"),
    _taken("--lookup-cache-dynamic -lcd", _LOOKUPS, "FILE"),
    *(
        _taken(f"--spec-ngram-{name}", _LOOKUPS, "N")
        for name in (
            *("size-n", "size-m", "min-hits", "mod-n-min", "mod-n-max", "mod-n-match"),
            *(f"{kind}-{what}" for kind in ("simple", "map-k", "map-k4v") for what in ("size-n", "size-m", "min-hits")),
        )
    ),
    _taken("--spec-draft-sampling", "drafts change no text: the model itself chooses each token", "HOW"),
    _taken("--spec-draft-backend-sampling --no-spec-draft-backend-sampling", _DRAFTS),
    _taken("--backend-sampling -bs", "sampling runs where a seed always gives the same text"),
    _taken("--ctx-size-draft -cd", "a draft model has the context of its model", "N"),
    _taken("--n-gpu-layers-draft --gpu-layers-draft -ngld --spec-draft-ngl", _WITH_MODEL, "N"),
    _taken("--threads-draft -td --spec-draft-threads", "a draft model has the threads of its model", "N"),
    _taken("--threads-batch-draft -tbd --spec-draft-threads-batch", "a draft model has the threads of its model", "N"),
    _taken("--prio-draft --spec-draft-prio", "the system's own priority is kept", "N"),
    _taken("--prio-batch-draft --spec-draft-prio-batch", "the system's own priority is kept", "N"),
    _taken("--poll-draft --spec-draft-poll", "how threads wait was chosen by measurement", "N"),
    _taken("--poll-batch-draft --spec-draft-poll-batch", "how threads wait was chosen by measurement", "N"),
    _refused("--cache-type-k-draft -ctkd --spec-draft-type-k", "leave it out: its keys are f16", "TYPE", ("f16",)),
    _refused("--cache-type-v-draft -ctvd --spec-draft-type-v", "leave it out: its values are f16", "TYPE", ("f16",)),
    _refused("--device-draft -devd --spec-draft-device", f"leave it out: {_WITH_MODEL}", "NAMES"),
    _refused("--override-tensor-draft -otd --spec-draft-override-tensor", f"leave it out: {_WITH_MODEL}", "PATTERN"),
    _refused("--cpu-moe-draft -cmoed --spec-draft-cpu-moe", f"leave it out: {_WITH_MODEL}"),
    _refused(
        "--n-cpu-moe-draft -ncmoed --spec-draft-n-cpu-moe --spec-draft-ncmoe", f"leave it out: {_WITH_MODEL}", "N"
    ),
    _refused("--cpu-mask-draft -Cd --spec-draft-cpu-mask", _PINNING, "M"),
    _refused("--cpu-range-draft -Crd --spec-draft-cpu-range", _PINNING, "RANGE"),
    _refused("--cpu-strict-draft --spec-draft-cpu-strict", _PINNING, "N", ("0",)),
    _refused("--cpu-mask-batch-draft -Cbd --spec-draft-cpu-mask-batch", _PINNING, "M"),
    _refused("--cpu-strict-batch-draft --spec-draft-cpu-strict-batch", _PINNING, "N", ("0",)),
    _refused("--spec-synth-len", f"`{PROGRAM} bench draft` measures what drafts bring", "L"),
    _refused("--spec-synth-rates", f"`{PROGRAM} bench draft` measures what drafts bring", "P"),
    # Where a model is computed.
    _refused("--cpu-mask -C", _PINNING, "M"),
    _refused("--cpu-range -Cr", _PINNING, "RANGE"),
    _refused("--cpu-strict", _PINNING, "N", ("0",)),
    _refused("--cpu-mask-batch -Cb", _PINNING, "M"),
    _refused("--cpu-range-batch -Crb", _PINNING, "RANGE"),
    _refused("--cpu-strict-batch", _PINNING, "N", ("0",)),
    _refused("--numa", "start the server under numactl, as numactl --interleave=all", "TYPE"),
    _refused("--no-kv-offload -nkvo", "give fewer --gpu-layers: the cache lies where its layers are"),
    _refused("--no-repack -nr", "leave it out: weights are always repacked for the processor's kernels"),
    _refused("--no-host", "leave it out: weights are always repacked for the processor's kernels"),
    _refused("--no-op-offload", "leave it out, or use the processor alone with --device none"),
    _refused("--override-tensor -ot", "use --n-cpu-moe N, which keeps the experts of N layers in memory", "PATTERN"),
    _taken("--moe-cache-mib", "what fits on the GPU is chosen for whole layers", "N"),
    _refused("--n-cpu-ffn -ncffn", "give fewer --gpu-layers", "N", ("0",)),
    _refused("--split-mode -sm", "leave it out: layers are split among GPUs", "MODE", ("layer",)),
    _refused("--tensor-split -ts", "leave it out: layers are split by the memory that each GPU has free", "SHARES"),
    _refused("--main-gpu -mg", "name the GPUs to use with --device", "N", ("0",)),
    _refused("--fit -fit", f"leave it out: {_FIT}", "WHEN", ("on",)),
    _refused("--lazy-mode -lzm", "leave it out, or read the whole file with --no-mmap", "MODE", ("auto",)),
    _refused("--rpc", f"start `{PROGRAM} worker` on the other machine, and name it with --device rpc://HOST:PORT", "S"),
    _refused("--list-devices", f"`{PROGRAM} doctor` lists them"),
    _refused("--mmproj-device -mmdev", "leave it out, or name the GPU with --device", "NAME"),
    _refused("--no-mmproj-offload", "leave it out, or use the processor alone with --device none"),
    # What a model is.
    _refused("--rope-scaling", _POSITIONS, "KIND"),
    *(_refused(f"--rope-{name}", _POSITIONS, "N") for name in ("scale", "freq-base", "freq-scale")),
    *(
        _refused(f"--yarn-{name}", _POSITIONS, "N")
        for name in ("orig-ctx", "ext-factor", "attn-factor", "beta-slow", "beta-fast")
    ),
    _refused("--grp-attn-n -gan", _POSITIONS, "N", ("1",)),
    _refused("--grp-attn-w -gaw", _POSITIONS, "N"),
    _refused("--override-kv", "change the file with llama.cpp's gguf_set_metadata.py", "KEY=TYPE:VALUE"),
    _refused("--check-tensors", f"`{PROGRAM} models verify NAME` compares the file with its SHA-256"),
    _refused("--control-vector", _VECTORS, "FILE"),
    _refused("--control-vector-scaled", _VECTORS, "FILE:SCALE"),
    _refused("--control-vector-layer-range", _VECTORS, "START END"),
    _refused("--model-url -mu", f"{_MODEL}, or give --model the path of the downloaded file", "URL"),
    _refused("--docker-repo -dr", _MODEL, "REPO"),
    _refused("--mmproj-url -mmu", "download the file and name it with --mmproj", "URL"),
    _refused("--image-min-tokens", "leave it out: the projector's file says it", "N"),
    _refused("--image-max-tokens", "leave it out: the projector's file says it", "N"),
    _refused("--video-fps", "send images of the video", "N"),
    _refused("--video-timestamp-interval", "send images of the video", "N"),
    _refused("--video-ffmpeg-dir", "send images of the video", "PATH"),
    *(
        _refused(f"--{name}", _MODEL)
        for name in (
            *("embd-gemma-default", "fim-qwen-1.5b-default", "fim-qwen-3b-default", "fim-qwen-7b-default"),
            *("fim-qwen-7b-spec", "fim-qwen-14b-spec", "fim-qwen-30b-default", "gpt-oss-20b-default"),
            *("gpt-oss-120b-default", "vision-gemma-4b-default", "vision-gemma-12b-default"),
        )
    ),
    # What a reply is: a request can ask for it.
    _refused("--samplers", "switch single ones off by their values, as --top-k 0, or send samplers in requests", "S"),
    _refused("--sampler-seq --sampling-seq", "switch single ones off by their values, as --top-k 0", "S"),
    _refused("--adaptive-target", "use --min-p or --mirostat 2", "N", ("-1", "-1.0")),
    _refused("--adaptive-decay", "use --min-p or --mirostat 2", "N"),
    _refused("--dynatemp-range", "use --temp alone", "N", ("0", "0.0")),
    _refused("--dynatemp-exp", "use --temp alone", "N", ("1", "1.0")),
    _refused("--grammar", "send grammar in the request", "TEXT"),
    _refused("--grammar-file", "send grammar in the request", "FILE"),
    _refused("--json-schema -j", "send json_schema or response_format in the request", "SCHEMA"),
    _refused("--json-schema-file -jf", "send json_schema or response_format in the request", "FILE"),
    _refused("--reverse-prompt -r", "send stop in the request", "TEXT"),
    _refused("--special -sp", "leave it out: special tokens are never shown as text"),
    _refused("--spm-infill", "leave it out: the model's file says in which order the middle is filled in"),
    _refused("--embd-normalize", "send embd_normalize in the request", "N", ("2",)),
    _refused("--context-shift", "send truncation auto to /v1/responses, or truncate to /api/chat"),
    _refused("--no-jinja", "leave it out: templates are always rendered by jinja"),
    _refused("--skip-chat-parsing", "use --reasoning-format none, and send no tools"),
    _taken("--no-skip-chat-parsing", "replies are always taken apart"),
    _refused("--no-prefill-assistant", "send add_generation_prompt true in the request"),
    _refused("--reasoning-budget-message", "leave it out: the thoughts end as the model ends them", "TEXT"),
    # What the server is.
    _refused("--reuse-port", "give each server a port of its own with --port"),
    _refused("--path", "serve files with another program, and let its pages in with --cors", "PATH"),
    _refused("--api-prefix", _PROXY, "PREFIX"),
    _refused("--ssl-key-file", _PROXY, "FILE"),
    _refused("--ssl-cert-file", _PROXY, "FILE"),
    _refused("--cors-methods", "leave it out: pages that are let in may use every route", "METHODS"),
    _refused("--cors-headers", "leave it out: pages that are let in may send any header", "HEADERS"),
    _refused("--cors-credentials", "leave it out: pages send the key as a header"),
    _taken("--no-cors-credentials", "pages send the key as a header"),
    _refused("--webui-mcp-proxy --ui-mcp-proxy", _TOOLS),
    _refused("--tools", _TOOLS, "TOOLS"),
    _refused("--tools-runtime", _TOOLS, "NAME"),
    _refused("--mcp-servers-config", _TOOLS, "PATH"),
    _refused("--mcp-servers-json", _TOOLS, "JSON"),
    _refused("--agent -ag", _TOOLS),
    _refused("--media-path", "send images as data URLs", "PATH"),
    _refused("--models-dir", f"`{PROGRAM} models import FOLDER` uses the models of a folder", "PATH"),
    _refused("--models-preset", f"`{PROGRAM} models settings NAME --set` keeps settings for each model", "PATH"),
    _refused("--no-models-autoload", "use --models-max 1 with --strict-models"),
    _refused("--log-prompts-dir", "leave it out: what requests say is never logged", "PATH"),
    # What ends at once there.
    _refused("--usage", f"`{PROGRAM} serve --help` lists the options"),
    _refused("--version", f"`{PROGRAM} --version` says it"),
    _refused("--cache-list -cl", f"`{PROGRAM} models list` lists the models"),
    _refused("--completion-bash", f"`{PROGRAM} --help` lists the commands"),
)
# More names for options that are here, by what they are called in the code.
OTHER_NAMES = {
    "n_ctx": ("--kv-unified-per-slot",),
    "n_cpu_moe": ("-cmoe",),
    "draft": ("--spec-draft-model",),
    "no_mmproj": ("--no-mmproj-auto",),
    "devices": ("-dev",),
    "cache_ram": ("-cram",),
    "n_predict": ("--predict",),
    "temperature": ("--temp",),
    "seed": ("-s",),
    "typical_p": ("--typical",),
    "top_n_sigma": ("--top-nsigma",),
    "mirostat_tau": ("--mirostat-ent",),
    "mirostat_eta": ("--mirostat-lr",),
    "logit_bias": ("-l",),
}
# Switches here or there whose value may be left out, and what that means.
_SILENT = {
    **dict.fromkeys(("--flash-attention", "--flash-attn", "-fa"), "on"),
    **dict.fromkeys(("--cpu-moe", "-cmoe"), str(MAX_LAYERS)),
}


class ServeCommand(TyperCommand):
    """A command that knows llama-server's options too, by all of their names, and the variables it reads."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for option in self.params:
            option.opts.extend(OTHER_NAMES.get(option.name or "", ()))
        self.params += [_parameter(number, switch) for number, switch in enumerate(SWITCHES)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and before them the variables that say what was not typed."""
        typed = {one.partition("=")[0] for one in args}
        given = [] if typed & set(ctx.help_option_names) else self._given(typed)
        ctx.meta[_TYPED], ctx.meta[_GIVEN] = typed, given
        ahead = [argument for one in given for argument in one.arguments]
        try:
            rest = super().parse_args(ctx, _with_values([*ahead, *args]))
        except typer.BadParameter as error:
            variable = _variable_of(error.param, given)
            error.param_hint = repr(variable) if variable else error.param_hint
            raise
        told = [one.variable for one in given if not (one.option.name or "").startswith(_SWITCH)]
        if told:
            say_on_stderr(f"From the environment: {', '.join(told)}.")
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error about an option says which variable gave it."""
        try:
            return super().invoke(ctx)
        except (BadOption, BadRequest) as error:
            sentence = with_variables(error.message, ctx.meta[_GIVEN])
            if sentence == error.message:
                raise
            raise BadOption(sentence) from None

    def _given(self, typed: Iterable[str]) -> list[Given]:
        own = [option for option in self.params if isinstance(option, TyperOption)]
        options = {name: option for option in own for name in names_of(option)}
        names = [one if one in options else one[:2] for one in typed]  # a value can follow a letter, as in -c1024
        if os.environ.get(str(options["--api-key"].envvar)):  # our own variable of the key goes before theirs
            names.append("--api-key")
        return given_by(os.environ, options, names)


_TYPED, _GIVEN = "slipstream.typed", "slipstream.given"
_SWITCH = "llama_server_"


def _variable_of(option: Any, given: Iterable[Given]) -> str | None:
    return next((one.variable for one in given if one.option is option), None)


def _with_values(args: Sequence[str]) -> list[str]:
    """Return the arguments with the values that may be left out."""
    found: list[str] = []
    for one, following in pairwise([*args, "-"]):
        found.append(one)
        if one in _SILENT and following.startswith("-"):
            found.append(_SILENT[one])
    return found


def _parameter(number: int, switch: LlamaServerSwitch) -> TyperOption:
    def meet(ctx: Any, option: Any, value: Any) -> None:
        if value:
            typed = next((name for name in switch.names if name in ctx.meta[_TYPED]), None)
            named = typed or _variable_of(option, ctx.meta[_GIVEN]) or switch.names[0]
            switch.met(named, value if isinstance(value, str) else "")

    return TyperOption(
        param_decls=[f"{_SWITCH}{number}", *switch.names],
        is_flag=not switch.metavar,
        metavar=switch.metavar or None,
        nargs=len(switch.metavar.split()) or 1,
        expose_value=False,
        hidden=True,
        callback=meet,
    )
