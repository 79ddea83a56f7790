"""GET /docs: the routes as a page that needs no script and nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import HTMLResponse, Response

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
:root { color-scheme: light dark; }
h2 { margin-top: 2rem; } td { padding: .2rem .8rem .2rem 0; vertical-align: top; }
code { font: 13px ui-monospace, monospace; } summary { cursor: pointer; }
.method { font-weight: 600; } .fields { margin: .3rem 0 .3rem 1rem; }
"""
_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


async def docs_page(http: HttpRequest) -> Response:
    """Return the page."""
    return HTMLResponse(_page(http.app.openapi()), headers=_HEADERS)


def _page(schema: dict[str, Any]) -> str:
    by_tag: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            row = _row(path, method, operation, schema)
            by_tag.setdefault((operation.get("tags") or ["other"])[0], []).append(row)
    parts = [f"<h2>{escape(tag)}</h2><table>{''.join(rows)}</table>" for tag, rows in by_tag.items()]
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
        f"<h1>{title}</h1><p>The same for programs: <a href=/openapi.json>openapi.json</a>.</p>{''.join(parts)}</html>"
    )


def _row(path: str, method: str, operation: dict[str, Any], schema: dict[str, Any]) -> str:
    text = escape((operation.get("description") or operation.get("summary") or "").partition("\n")[0])
    asked = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    asked += _fields(operation.get("requestBody", {}), schema)
    answered = next((_fields(answer, schema) for answer in operation["responses"].values()), [])
    more = _details("fields", asked) + _details("answer", answered)
    return f"<tr><td class=method>{method.upper()}</td><td><code>{escape(path)}</code></td><td>{text}{more}</td></tr>"


def _fields(described: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Return the fields of a body or an answer, of each entry where it is a list."""
    form = described.get("content", {}).get("application/json", {}).get("schema", {})
    name = str(form.get("items", form).get("$ref", "")).rpartition("/")[2]
    return [*schema.get("components", {}).get("schemas", {}).get(name, {}).get("properties", {})]


def _details(title: str, fields: list[str]) -> str:
    listed = ", ".join(f"<code>{escape(field)}</code>" for field in fields)
    return f"<details><summary>{title}</summary><p class=fields>{listed}</p></details>" if listed else ""
