"""The environment variables that llama-server reads, as options of ``serve``; what is typed goes before them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from typer.core import TyperOption

from core.values.errors import BadOption

PREFIX = "LLAMA_ARG_"
API_KEY = "LLAMA_API_KEY"
# Options whose variable is called as they are.
_AS_CALLED = (
    *("threads", "ctx-size", "kv-unified-per-slot", "n-predict", "swa-full", "ctx-checkpoints", "cache-ram"),
    *("kv-unified", "cache-idle-slots", "context-shift", "flash-attn", "perf", "temperature", "top-k", "top-p"),
    *("min-p", "repeat-penalty", "presence-penalty", "frequency-penalty", "backend-sampling", "pooling"),
    *("rope-scale", "rope-freq-base", "rope-freq-scale", "yarn-orig-ctx", "yarn-ext-factor", "yarn-attn-factor"),
    *("yarn-beta-slow", "yarn-beta-fast", "grp-attn-n", "grp-attn-w", "kv-offload", "repack", "no-host"),
    *("cache-type-k", "cache-type-v", "defrag-thold", "cont-batching", "mmproj", "mmproj-url", "mmproj-auto"),
    *("mmproj-offload", "image-min-tokens", "image-max-tokens", "mtmd-batch-max-tokens", "video-fps"),
    *("video-timestamp-interval", "video-ffmpeg-dir", "rpc", "load-mode", "lazy-mode", "numa", "device"),
    *("override-tensor", "cpu-moe", "n-cpu-moe", "n-cpu-ffn", "n-gpu-layers", "split-mode", "tensor-split"),
    *("main-gpu", "fit", "fit-target", "fit-ctx", "alias", "tags", "model", "model-url", "docker-repo", "hf-repo"),
    *("hf-file", "host", "port", "reuse-port", "cors-origins", "cors-methods", "cors-headers", "cors-credentials"),
    *("api-prefix", "ui-config", "ui-config-file", "ui-mcp-proxy", "tools", "tools-runtime", "mcp-servers-config"),
    *("mcp-servers-json", "agent", "ui", "embeddings", "reranking", "api-key-file", "ssl-key-file"),
    *("ssl-cert-file", "chat-template-kwargs", "timeout", "sse-ping-interval", "threads-http", "cache-prompt"),
    *("cache-reuse", "models-dir", "models-preset", "models-max", "models-autoload", "jinja", "reasoning"),
    *("reasoning-effort", "reasoning-preserve", "chat-template", "chat-template-file", "skip-chat-parsing"),
    *("prefill-assistant", "log-file", "log-jsonl", "log-colors", "offline", "log-verbosity", "log-prefix"),
    *("log-timestamps", "spec-draft-cpu-moe", "spec-draft-n-cpu-moe", "spec-draft-n-max", "spec-draft-n-min"),
    *("spec-synth-len", "spec-synth-rates", "spec-draft-p-split", "spec-draft-p-min"),
    *("slot-save-path", "moe-cache-mib", "spec-draft-sampling"),  # in llama.cpp newer than ours
    *("spec-draft-backend-sampling", "n-gpu-layers-draft", "spec-draft-model", "spec-type"),
)
# The variable that stands for an option.
VARIABLES = {f"--{name}": PREFIX + name.replace("-", "_").upper() for name in _AS_CALLED} | {
    "--api-key": API_KEY,
    "--batch-size": f"{PREFIX}BATCH",
    "--draft-max": f"{PREFIX}DRAFT_MAX",
    "--draft-min": f"{PREFIX}DRAFT_MIN",
    "--checkpoint-min-step": f"{PREFIX}CHECKPOINT_MIN_SPACING_NT",
    "--hf-repo-draft": f"{PREFIX}SPEC_DRAFT_HF_REPO",
    "--metrics": f"{PREFIX}ENDPOINT_METRICS",
    "--parallel": f"{PREFIX}N_PARALLEL",
    "--path": f"{PREFIX}STATIC_PATH",
    "--props": f"{PREFIX}ENDPOINT_PROPS",
    "--reasoning-budget": f"{PREFIX}THINK_BUDGET",
    "--reasoning-budget-message": f"{PREFIX}THINK_BUDGET_MESSAGE",
    "--reasoning-format": f"{PREFIX}THINK",
    "--rope-scaling": f"{PREFIX}ROPE_SCALING_TYPE",
    "--slots": f"{PREFIX}ENDPOINT_SLOTS",
    "--spec-draft-type-k": f"{PREFIX}SPEC_DRAFT_CACHE_TYPE_K",
    "--spec-draft-type-v": f"{PREFIX}SPEC_DRAFT_CACHE_TYPE_V",
    "--ubatch-size": f"{PREFIX}UBATCH",
}
_ON, _OFF = ("on", "enabled", "true", "1"), ("off", "disabled", "false", "0")
# Options that are switches there, and take values here or may.
_SWITCHES = ("--cpu-moe",)
# Options whose values are on, off and others, which llama-server takes in its other words too.
_ON_OR_OFF = ("--flash-attn", "--reasoning", "--fit", "--log-colors")
# Options of one matter, by their names without dashes: where one is typed, the others' variables do not count.
_MATTERS = (
    {"ctx", "ctx-size"},
    {"kv-type", "cache-type-k", "cache-type-v"},
    {"model", "last-model", "hf-repo", "hf-file", "model-url", "docker-repo"},
    {"draft", "hf-repo-draft", "spec-draft-model"},
    {"speculation", "spec-type"},
    {"mmap", "mlock", "load-mode"},
    {"chat-template", "chat-template-file"},
    {"mmproj", "mmproj-auto", "mmproj-url"},
    {"pooling", "reranking"},
)


class Given(NamedTuple):
    """A variable that is set, its option's names, and what would have been typed for it."""

    variable: str
    option: TyperOption
    arguments: list[str]


def given_by(environment: Mapping[str, str], options: Mapping[str, TyperOption], typed: Collection[str]) -> list[Given]:
    """Return what variables say of ``options``, which are by each of their names; ``typed`` are the names typed.

    Empty variables say nothing. Raises BadOption for a switch that is neither on nor off.
    """
    matters = {_bare(name) for one in typed if one in options for name in names_of(options[one])}
    for matter in _MATTERS:
        matters |= matter if matter & matters else set()
    found = []
    for name, variable in VARIABLES.items():
        option, value = options[name], environment.get(variable, "")
        if _bare(name) in matters:
            continue
        if not option.is_flag and name not in _SWITCHES:
            if value:
                found.append(Given(variable, option, [f"{name}={_word(name, value)}"]))
            continue
        if (opposite := f"{PREFIX}NO_{variable.removeprefix(PREFIX)}") in environment:
            variable, value = opposite, _OFF[0]
        off = f"--no-{name[2:]}"
        if value.lower() in _ON:
            found.append(Given(variable, option, [name]))
        elif value.lower() in _OFF:
            if off in options:
                found.append(Given(variable, options[off], [off]))
        elif value:
            raise BadOption(f"The variable {variable} is on or off (also true and false, 1 and 0), not {value[:40]!r}.")
    return found


def with_variables(sentence: str, given: Collection[Given]) -> str:
    """Return a sentence about options with the variables behind it that gave them."""
    told = [sentence]
    for one in given:
        is_named = any(re.search(rf"{re.escape(name)}(?![\w-])", sentence) for name in _long(one.option))
        if is_named or sentence.startswith(f"{one.option.name} "):
            told.append(f"The variable {one.variable} gives {one.arguments[0].partition('=')[0]}.")
    return " ".join(told)


def names_of(option: TyperOption) -> list[str]:
    """Return all names of an option, those that switch it off too."""
    return [*option.opts, *option.secondary_opts]


def _word(name: str, value: str) -> str:
    if name in _ON_OR_OFF:
        return "on" if value.lower() in _ON else "off" if value.lower() in _OFF else value
    return value


def _bare(name: str) -> str:
    return name.lstrip("-").removeprefix("no-")


def _long(option: TyperOption) -> list[str]:
    return [name for name in names_of(option) if name.startswith("--")]
