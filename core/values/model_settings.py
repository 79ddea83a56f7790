"""A user's settings for one model: frozen, checked when made from text. None is the recommended value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from core.values.engine_options import EngineOptions, KvType
from core.values.errors import BadOption, BadRequest, SlipstreamError
from core.values.request import ReplySpeed, SamplingParams
from models.formatting.sentence import Sentence

# Far above any real system prompt.
MAX_SYSTEM_CHARACTERS = 100_000
_AUTOMATIC = Sentence("chosen for this machine")
_SAMPLING_DEFAULTS = SamplingParams()


class BadSetting(SlipstreamError):
    """A setting that does not exist, or an invalid value."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of one model; None is the recommended value.

    ``ctx`` is the context of a request in tokens, ``draft`` the name of its draft model, ``worker`` another machine
    that lends memory, as rpc://HOST:PORT, ``speed`` the speed of requests that name none, ``system`` the system prompt
    of chats that have none.
    """

    ctx: int | None = None
    kv_type: KvType | None = None
    gpu_layers: int | None = None
    threads: int | None = None
    draft: str | None = None
    worker: str | None = None
    speed: str | None = None
    system: str | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    dry_multiplier: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None

    def __post_init__(self) -> None:
        try:
            EngineOptions(
                "any",
                n_ctx=self.ctx,
                kv_type=self.kv_type,
                n_gpu_layers=self.gpu_layers,
                n_threads=self.threads,
                also_worker=self.worker,
            )
            SamplingParams(**self.sampling)
        except BadOption as error:
            raise BadSetting(error.message) from error
        except BadRequest as error:
            raise BadSetting(f"{error.message[:1].upper()}{error.message[1:]}") from error
        if self.speed is not None and self.speed not in set(ReplySpeed):
            raise BadSetting(
                "The speed must be one of {speeds}, not {speed}.", speeds=", ".join(ReplySpeed), speed=repr(self.speed)
            )
        if self.draft is not None and not self.draft.strip():
            raise BadSetting(Sentence("The draft is the name of a model. To draft with the recommended one, reset it."))
        if self.system is not None:
            _check_system(self.system)

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling settings that are set, by the names of ``SamplingParams``."""
        return {name: value for name in SAMPLING if (value := getattr(self, name)) is not None}

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def with_texts(self, texts: Mapping[str, str]) -> ModelSettings:
        """Return these settings with some set from a user's text; raises BadSetting."""
        return ModelSettings(**(self.given | {setting_name(name): _typed(name, text) for name, text in texts.items()}))

    def without(self, names: tuple[str, ...]) -> ModelSettings:
        """Return these settings with some reset to the recommended value; raises BadSetting for an unknown name."""
        gone = {setting_name(name) for name in names}
        return ModelSettings(**{name: value for name, value in self.given.items() if name not in gone})


def settings_from(saved: object) -> tuple[ModelSettings, tuple[str, ...]]:
    """Return the valid ones of the saved settings, and a sentence for each invalid one."""
    if not isinstance(saved, Mapping):
        return ModelSettings(), (
            Sentence("The saved settings of this model are not readable: the recommended ones are used."),
        )
    settings, problems = ModelSettings(), []
    for name, value in saved.items():
        try:
            if name not in NAMES or not _has_type(name, value):
                raise BadSetting("{name} cannot be {value}.", name=name, value=repr(str(value)[:40]))
            settings = ModelSettings(**(settings.given | {name: value}))
        except BadSetting as error:
            problems.append(Sentence("A saved setting is not used: {message}", message=error.message))
    return settings, tuple(problems)


def recommended(name: str) -> str:
    """Return the value of a setting that is not set, as text."""
    if name in SAMPLING:
        return f"{getattr(_SAMPLING_DEFAULTS, name):g}"
    return {"speed": "standard", "system": Sentence("none"), "worker": "none"}.get(name, _AUTOMATIC)


def setting_name(typed: str) -> str:
    """Return the setting's name for typed text (any case, - or _); raises BadSetting, which lists all settings."""
    name = typed.strip().lower().replace("-", "_")
    if name not in NAMES:
        raise BadSetting(
            "There is no setting {typed}. Settings: {names}.", typed=repr(typed[:40]), names=", ".join(NAMES)
        )
    return name


def _typed(typed_name: str, text: str) -> int | float | str:
    name = setting_name(typed_name)
    kind, what = _KINDS[name]
    try:
        return kind(text if kind is str else text.strip())
    except ValueError:
        raise BadSetting("{name} must be {what}, not {text}.", name=name, what=what, text=repr(text[:40])) from None


def _has_type(name: str, value: object) -> bool:
    kind = _KINDS[name][0]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number if kind is float else type(value) is kind


def _check_system(system: str) -> None:
    if not system.strip():
        raise BadSetting(Sentence("The system prompt is empty. To have none, reset it."))
    if len(system) > MAX_SYSTEM_CHARACTERS:
        raise BadSetting(
            "The system prompt has {n_system:,} characters, more than {max_system_characters:,}.",
            n_system=len(system),
            max_system_characters=MAX_SYSTEM_CHARACTERS,
        )
    if system != system.encode("utf-8", "replace").decode():
        raise BadSetting(Sentence("The system prompt has halves of surrogate pairs, which are not text."))


_TEXT, _WHOLE, _NUMBER = (str, Sentence("text")), (int, Sentence("a whole number")), (float, Sentence("a number"))
_KINDS: dict[str, tuple[Callable[[str], int | float | str], str]] = {
    **dict.fromkeys(("ctx", "gpu_layers", "threads", "top_k", "repeat_last_n"), _WHOLE),
    "kv_type": (str, Sentence("one of {names}", names=", ".join(get_args(KvType)))),
    **dict.fromkeys(("draft", "worker", "speed", "system"), _TEXT),
}
NAMES = tuple(field.name for field in fields(ModelSettings))
"""Every setting, in the order in which they are shown."""
SAMPLING = tuple(name for name in NAMES if hasattr(_SAMPLING_DEFAULTS, name))
"""Names of ``SamplingParams`` that can be set for a model."""
_KINDS |= {name: _NUMBER for name in NAMES if name not in _KINDS}
