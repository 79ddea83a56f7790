"""Command-line options that belong together, as one frozen value instead of a row of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return ``command`` with each parameter whose type is a dataclass replaced by the options it is made of.

    The dataclass' fields carry Typer's annotations: ``top_k: Annotated[int | None, typer.Option(...)] = None``.
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups = {parameter.name: parameter.annotation for parameter in parameters if _is_group(parameter)}

    def run(**given: Any) -> None:
        values = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**given, **values)

    flat = [option for parameter in parameters for option in _options(parameter)]
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {option.name: option.annotation for option in flat}
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]  # inspect reads it
    return run


def _is_group(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    group = parameter.annotation
    if not _is_group(parameter):
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[f.name])
        for f in fields(group)
    ]


def _default(option: Field[Any]) -> Any:
    return inspect.Parameter.empty if option.default is MISSING else option.default
