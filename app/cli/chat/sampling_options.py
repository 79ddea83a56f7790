"""The sampling options of the command line, one for each setting of ``SamplingParams`` that shapes text."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from core.values.errors import BadRequest
from core.values.request import SamplingParams

_DEFAULTS = SamplingParams()


def _option(field: str, help: str, metavar: str = "N") -> Any:
    default = getattr(_DEFAULTS, field)
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    text = f"{help} Default {default:g}." if is_number else help
    return typer.Option(help=text, metavar=metavar, rich_help_panel="Sampling", show_default=False)


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """The options that the user gave; None was not given and is left to the server."""

    temperature: Annotated[float | None, _option("temperature", "Randomness; 0 always takes the likeliest token.")] = (
        None
    )
    seed: Annotated[int | None, _option("seed", "Makes a reply repeatable; without it, each reply draws one.")] = None
    top_k: Annotated[int | None, _option("top_k", "Only the K likeliest tokens; 0 is all.")] = None
    top_p: Annotated[float | None, _option("top_p", "Only tokens within this total probability; 1 is all.")] = None
    min_p: Annotated[float | None, _option("min_p", "Only tokens this likely beside the likeliest; 0 is all.")] = None
    typical_p: Annotated[float | None, _option("typical_p", "Locally typical tokens; 1 is off.")] = None
    top_n_sigma: Annotated[
        float | None, _option("top_n_sigma", "Only logits within N deviations of the best; -1 is off.")
    ] = None
    xtc_probability: Annotated[
        float | None, _option("xtc_probability", "How often XTC drops the likeliest tokens.")
    ] = None
    xtc_threshold: Annotated[
        float | None, _option("xtc_threshold", "How likely a token must be for XTC to drop it.")
    ] = None
    dry_multiplier: Annotated[
        float | None, _option("dry_multiplier", "Strength of DRY, against repeated sequences; 0 is off.")
    ] = None
    dry_base: Annotated[float | None, _option("dry_base", "How DRY grows with the length of the repetition.")] = None
    dry_allowed_length: Annotated[
        int | None, _option("dry_allowed_length", "Repetitions of this length are free under DRY.")
    ] = None
    dry_penalty_last_n: Annotated[
        int | None, _option("dry_penalty_last_n", "How far back DRY looks; -1 is everything.")
    ] = None
    dry_sequence_breaker: Annotated[
        list[str] | None,
        _option("dry_sequence_breakers", "Text that ends a repetition for DRY; may be given more than once.", "TEXT"),
    ] = None
    repeat_penalty: Annotated[
        float | None, _option("repeat_penalty", "Penalty on tokens that came before; 1 is off.")
    ] = None
    repeat_last_n: Annotated[int | None, _option("repeat_last_n", "How far back penalties look; -1 is everything.")] = (
        None
    )
    frequency_penalty: Annotated[
        float | None, _option("frequency_penalty", "Penalty by how often a token came, -2 to 2.")
    ] = None
    presence_penalty: Annotated[
        float | None, _option("presence_penalty", "Penalty on tokens that came at all, -2 to 2.")
    ] = None
    mirostat: Annotated[int | None, _option("mirostat", "2 holds the surprise of the text level; 0 is off.")] = None
    mirostat_tau: Annotated[float | None, _option("mirostat_tau", "The surprise that mirostat aims at.")] = None
    mirostat_eta: Annotated[float | None, _option("mirostat_eta", "How fast mirostat corrects.")] = None
    logit_bias: Annotated[
        list[str] | None,
        _option("logit_bias", "Adds BIAS to a token's logit; may be given more than once.", "TOKEN=BIAS"),
    ] = None
    ignore_eos: Annotated[
        bool,
        typer.Option(
            "--ignore-eos", help="Go on after the model wants to stop, up to --max-tokens.", rich_help_panel="Sampling"
        ),
    ] = False

    def fields(self) -> dict[str, Any]:
        """Return the fields of a request that were asked for; raises BadRequest for a value out of its range."""
        asked = {option.name: getattr(self, option.name) for option in fields(self)}
        breakers, biases = asked.pop("dry_sequence_breaker"), _biases(asked.pop("logit_bias") or ())
        given = {name: value for name, value in asked.items() if value is not None and value is not False}
        if breakers:
            given["dry_sequence_breakers"] = list(breakers)
        # Only to have it checked before anything is started: the server makes its own.
        SamplingParams(**_frozen(given), logit_bias=tuple(biases.items()))
        return {**given, "logit_bias": {str(token): bias for token, bias in biases.items()}} if biases else given


def _frozen(given: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _biases(pairs: list[str] | tuple[str, ...]) -> dict[int, float]:
    # llama.cpp's programs write 1234+1 and 1234-5.
    written = [re.sub(r"^(\d+)(?=[+-])", r"\1=", pair) for pair in pairs]
    try:
        return {int(token): float(bias) for token, bias in (pair.rsplit("=", 1) for pair in written)}
    except ValueError:
        raise BadRequest(f"--logit-bias takes TOKEN=BIAS, as in 1234=-5, not {' '.join(pairs)}") from None
