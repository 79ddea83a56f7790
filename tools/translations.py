"""Gather the texts of the window into Qt's translation files, and compile these: ``python -m tools.translations``.

That includes the sentences of the engine, the server and the library: see ``models/formatting/sentence.py``.

New texts are added to ``ui/language/slipstream_<code>.ts`` without a translation; texts that are gone are removed.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import PySide6

from ui.language import CONTEXT, FOLDER, LANGUAGES

ROOT = Path(__file__).parent.parent
# Where texts are, and the functions that take them. Errors take texts too, with facts for their {holes}.
FOLDERS = {"ui": ("tr", "in_all", "Sentence"), "app": ("Sentence",), "core": ("Sentence",), "models": ("Sentence",)}
CURATED = ROOT / "models" / "curated.json"
HOLE = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
SENTENCE = ROOT / "models" / "formatting" / "sentence.py"  # its texts are parameters


def texts() -> dict[str, str]:
    """Return all texts in the order of files and lines, each with the first file that has it."""
    found: dict[str, str] = {}
    for folder, functions in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            for text in _texts_of(file, functions):
                found.setdefault(text, file.relative_to(ROOT).as_posix())
    for text in _texts_of_data():
        found.setdefault(text, CURATED.relative_to(ROOT).as_posix())
    return found


def read(code: str) -> dict[str, str]:
    """Return the translations of a language, "" where one is missing, by text."""
    file = FOLDER / f"slipstream_{code}.ts"
    if not file.exists():
        return {}
    messages = ET.parse(file).getroot().iter("message")
    return {one.findtext("source", ""): one.findtext("translation", "") for one in messages}


def write(code: str, translations: dict[str, str]) -> Path:
    """Write the texts of the window with their translations; return the file."""
    root = ET.Element("TS", version="2.1", language=code, sourcelanguage="en")
    context = ET.SubElement(root, "context")
    ET.SubElement(context, "name").text = CONTEXT
    for text, origin in texts().items():
        message = ET.SubElement(context, "message")
        ET.SubElement(message, "location", filename=f"../../{origin}")
        ET.SubElement(message, "source").text = text
        said = ET.SubElement(message, "translation")
        said.text = translations.get(text) or None
        if said.text is None:
            said.set("type", "unfinished")
    ET.indent(root)
    file = FOLDER / f"slipstream_{code}.ts"
    body = ET.tostring(root, encoding="unicode")
    file.write_text(f'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n{body}\n', encoding="utf-8")
    return file


def compile_to(target: Path, source: Path) -> None:
    """Compile a .ts file, which people edit, into the .qm file that Qt reads."""
    program = Path(PySide6.__file__).parent / ("lrelease.exe" if sys.platform == "win32" else "lrelease")
    if not program.exists():
        program = program.parent / "Qt" / "libexec" / program.name
    subprocess.run([program, "-silent", source, "-qm", target], check=True)


def main() -> int:
    """Renew the files of all languages; return 1 where a text has no translation."""
    n_missing = 0
    for code in LANGUAGES:
        if code == "en":
            continue
        file = write(code, read(code))
        compile_to(file.with_suffix(".qm"), file)
        missing = [text for text, said in read(code).items() if not said]
        n_missing += len(missing)
        print(f"{file.name}: {len(read(code)):,} texts, {len(missing):,} without a translation")
    return 1 if n_missing else 0


def _texts_of_data() -> Iterator[str]:
    """Yield the texts in the curated list of models."""
    found = json.loads(CURATED.read_text(encoding="utf-8"))
    yield found["source"]
    for model in found["models"]:
        yield from (model["use"], model["good_for"])


def _texts_of(file: Path, functions: tuple[str, ...]) -> Iterator[str]:
    if file == SENTENCE:
        return
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first, function = node.args[0], node.func.id if isinstance(node.func, ast.Name) else ""
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
        if text is None and function in functions:
            raise ValueError(f"{file}:{node.lineno}: {function} takes a text, so that it can be found")
        if text is not None and (function in functions or _are_filled(HOLE.findall(text), node.keywords)):
            yield text


def _are_filled(holes: list[str], facts: list[ast.keyword]) -> bool:
    names = {fact.arg for fact in facts}
    return bool(holes) and (None in names or names.issuperset(holes))


if __name__ == "__main__":
    sys.exit(main())
