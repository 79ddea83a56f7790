"""The models of remotes as they are listed here, with what their servers say of them, each in its own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.server.remotes.store import Remote
from app.server.remotes.upstream import ModelList

# Of vLLM and SGLang; of ours, OpenRouter and Together; of Groq; of LM Studio; of llama-server, in ``meta``.
_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")
# Other servers' names for our capabilities.
_OTHER_WORDS = {"multimodal": "vision", "tool_use": "tools", "function_calling": "tools", "reasoning": "thinking"}
_KNOWN = ("completion", "tools", "thinking", "vision", "embedding", "insert")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A remote's model. ``n_ctx`` and ``n_bytes`` are 0 where they are not told; ``answers`` is False while the remote
    does not. ``created`` is in seconds since 1970. ``through`` are the ids of servers of ours that it comes through.
    """

    remote: Remote
    id: str
    answers: bool = True
    n_ctx: int = 0
    n_bytes: int = 0
    created: int = 0
    quantisation: str = ""
    capabilities: tuple[str, ...] = ("completion", "tools")
    through: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that it has here."""
        return f"{self.remote.name}/{self.id}"

    def as_openai(self) -> dict[str, Any]:
        """Return it as /v1/models lists it."""
        told: dict[str, Any] = {"capabilities": list(self.capabilities)}
        if self.n_ctx:
            told |= {"context_length": self.n_ctx, "max_model_len": self.n_ctx}
        if self.n_bytes:
            told["size"] = self.n_bytes
        if self.through:
            told["through"] = list(self.through)
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": self.remote.name,
            "is_toy": False,
            "loaded": self.answers,
            "remote": self.remote.name,
            **told,
        }


def listed_models(lists: dict[Remote, ModelList]) -> list[ListedModel]:
    """Return the models of all remotes."""
    return [
        _listed(remote, one, answers=known.problem is None) for remote, known in lists.items() for one in known.listed
    ]


def _listed(remote: Remote, one: dict[str, Any], *, answers: bool) -> ListedModel:
    meta = one["meta"] if isinstance(one.get("meta"), dict) else {}
    return ListedModel(
        remote,
        one["id"],
        answers,
        next((n for place in (one, meta) for name in _CONTEXT if (n := _number(place.get(name)))), 0),
        _number(one.get("size")) or _number(meta.get("size")),
        _number(one.get("created")),
        str(one.get("quantization") or ""),
        _capabilities(one),
        tuple(one.get("through", ())),
    )


def _capabilities(one: dict[str, Any]) -> tuple[str, ...]:
    """Return what a model can do. That it calls tools is believed unless a list of such things leaves it out."""
    told = one.get("capabilities")
    words = [str(word) for word in told] if isinstance(told, list) else []
    if isinstance(told, dict):  # Mistral's
        words = [str(word) for word, can in told.items() if can is True]
    parameters = one.get("supported_parameters")  # OpenRouter's
    is_told = "is_toy" in one or isinstance(told, dict) or isinstance(parameters, list)
    words += [str(word) for word in parameters] if isinstance(parameters, list) else []
    architecture = one.get("architecture")
    if isinstance(architecture, dict) and "image" in (architecture.get("input_modalities") or ()):
        words.append("vision")
    can = {_OTHER_WORDS.get(word, word) for word in words}
    if "embedding" not in can:
        can |= {"completion"} if is_told else {"completion", "tools"}
    return tuple(word for word in _KNOWN if word in can)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < 2**53 else 0
