"""What the settings of a model are called, and what they do. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from core.values.engine_options import KvType
from core.values.model_settings import SPEEDS


@dataclass(frozen=True, slots=True)
class SettingWords:
    """The label of a setting, and a sentence about it."""

    label: str
    help: str


LOADING = {
    "ctx": SettingWords("Context", "Tokens of prompt and reply together. A longer one takes more memory."),
    "kv_type": SettingWords("KV cache", "q8_0 halves the memory of the context at hardly any loss; q4_0 costs some."),
    "gpu_layers": SettingWords("GPU layers", "How many layers are on the GPU; 0 uses the processor alone."),
    "threads": SettingWords("Threads", "Threads of the processor."),
    "draft": SettingWords("Draft", "A small model or head that guesses ahead: replies stay the same and come sooner."),
    "worker": SettingWords(
        "Also use worker",
        "Another machine that lends its memory to this model. The Server page adds workers.",
    ),
}
REPLIES = {
    "speed": SettingWords("Speed", "How soon replies are wanted where a chat does not say."),
    "system": SettingWords("System prompt", "What chats begin with that have none of their own."),
    "temperature": SettingWords("Temperature", "0 always takes the most likely token; higher is more varied."),
    "top_k": SettingWords("Top K", "Only the K most likely tokens are considered; 0 considers all."),
    "top_p": SettingWords("Top P", "Only the most likely tokens that together reach this probability; 1 is off."),
    "min_p": SettingWords("Min P", "Only tokens at least this likely, measured against the most likely one; 0 is off."),
    "typical_p": SettingWords("Typical P", "Only tokens about as surprising as usual; 1 is off."),
    "top_n_sigma": SettingWords("Top N sigma", "Only tokens within so many deviations of the best; -1 is off."),
    "xtc_probability": SettingWords("XTC probability", "How often the most likely tokens are left out; 0 is off."),
    "xtc_threshold": SettingWords("XTC threshold", "Which tokens count as most likely for XTC."),
    "dry_multiplier": SettingWords("DRY multiplier", "How strongly repeated phrases are avoided; 0 is off."),
    "repeat_penalty": SettingWords("Repeat penalty", "Above 1 makes recent tokens less likely; 1 is off."),
    "repeat_last_n": SettingWords("Repeat window", "How many recent tokens that looks at; -1 is all, 0 is off."),
    "frequency_penalty": SettingWords("Frequency penalty", "Above 0 avoids tokens by how often they came; 0 is off."),
    "presence_penalty": SettingWords("Presence penalty", "Above 0 avoids tokens that came at all; 0 is off."),
}
CHOICES: dict[str, tuple[tuple[str, str], ...]] = {
    "kv_type": tuple((kind, kind) for kind in get_args(KvType)),
    "speed": tuple((speed, speed.capitalize()) for speed in SPEEDS),
    "draft": (("none", "None"),),
    "worker": (),
}
AUTOMATIC = {
    "draft": "Automatic (recommended)",
    "kv_type": "Automatic (recommended)",
    "worker": "None: this machine alone",
}
HEADS = ("mtp", "Heads in its file")
