"""What the settings of a model are called, and what they do. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from core.values.engine_options import KvType
from core.values.request import ReplySpeed
from ui.client.speeds import CHOICE_OF, speed_of
from ui.language import tr


@dataclass(frozen=True, slots=True)
class SettingWords:
    """The label of a setting, and a sentence about it."""

    label: str
    help: str


LOADING = {
    "ctx": SettingWords(tr("Context"), tr("Tokens of prompt and reply together. A longer one takes more memory.")),
    "kv_type": SettingWords(
        tr("KV cache"), tr("q8_0 halves the memory of the context at hardly any loss; q4_0 costs some.")
    ),
    "gpu_layers": SettingWords(tr("GPU layers"), tr("How many layers are on the GPU; 0 uses the processor alone.")),
    "threads": SettingWords(tr("Threads"), tr("Threads of the processor.")),
    "draft": SettingWords(
        tr("Draft"), tr("A small model or head that guesses ahead: replies stay the same and come sooner.")
    ),
    "worker": SettingWords(
        tr("Also use worker"), tr("Another machine that lends its memory to this model. The Server page adds workers.")
    ),
}
REPLIES = {
    "speed": SettingWords(tr("Speed"), tr("How soon replies are wanted where a chat does not say.")),
    "system": SettingWords(tr("System prompt"), tr("What chats begin with that have none of their own.")),
    "temperature": SettingWords(tr("Temperature"), tr("0 always takes the most likely token; higher is more varied.")),
    "top_k": SettingWords(tr("Top K"), tr("Only the K most likely tokens are considered; 0 considers all.")),
    "top_p": SettingWords(
        tr("Top P"), tr("Only the most likely tokens that together reach this probability; 1 is off.")
    ),
    "min_p": SettingWords(
        tr("Min P"), tr("Only tokens at least this likely, measured against the most likely one; 0 is off.")
    ),
    "typical_p": SettingWords(tr("Typical P"), tr("Only tokens about as surprising as usual; 1 is off.")),
    "top_n_sigma": SettingWords(tr("Top N sigma"), tr("Only tokens within so many deviations of the best; -1 is off.")),
    "xtc_probability": SettingWords(
        tr("XTC probability"), tr("How often the most likely tokens are left out; 0 is off.")
    ),
    "xtc_threshold": SettingWords(tr("XTC threshold"), tr("Which tokens count as most likely for XTC.")),
    "dry_multiplier": SettingWords(tr("DRY multiplier"), tr("How strongly repeated phrases are avoided; 0 is off.")),
    "repeat_penalty": SettingWords(tr("Repeat penalty"), tr("Above 1 makes recent tokens less likely; 1 is off.")),
    "repeat_last_n": SettingWords(
        tr("Repeat window"), tr("How many recent tokens that looks at; -1 is all, 0 is off.")
    ),
    "frequency_penalty": SettingWords(
        tr("Frequency penalty"), tr("Above 0 avoids tokens by how often they came; 0 is off.")
    ),
    "presence_penalty": SettingWords(tr("Presence penalty"), tr("Above 0 avoids tokens that came at all; 0 is off.")),
}
CHOICES: dict[str, tuple[tuple[str, str], ...]] = {
    "kv_type": tuple((kind, kind) for kind in get_args(KvType)),
    "speed": tuple((speed.value, CHOICE_OF[speed_of(speed)].name) for speed in ReplySpeed),
    "draft": (("none", tr("None")),),
    "worker": (),
}
AUTOMATIC = {
    "draft": tr("Automatic (recommended)"),
    "kv_type": tr("Automatic (recommended)"),
    "worker": tr("None: this machine alone"),
}
HEADS = ("mtp", tr("Heads in its file"))
