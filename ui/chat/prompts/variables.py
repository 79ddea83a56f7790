"""Variables in a prompt: ``{{name}}``. No Qt."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"\{\{\s*([^{}\s][^{}\n]{0,59}?)\s*\}\}")


def variables_of(text: str) -> list[str]:
    """Return the names of the variables, each once, in the order in which they come."""
    return list(dict.fromkeys(match[1] for match in _VARIABLE.finditer(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return the text with a value in place of each variable that has one; values are not looked into again."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
