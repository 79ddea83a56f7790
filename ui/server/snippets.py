"""What to enter in editors, agents and scripts, so that they use this server. No Qt here."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from ui.language import tr

NAME = "Slipstream"
_REPLY = 4  # of the context, one part in so many is kept for the reply
KEY_VARIABLE = "SLIPSTREAM_API_KEY"


@dataclass(frozen=True, slots=True)
class Address:
    """How a program reaches a model: ``url`` without /v1, a key, a model, its context in tokens, and if it sees."""

    url: str
    key: str
    model: str
    n_ctx: int
    sees: bool = False


@dataclass(frozen=True, slots=True)
class Snippet:
    """The text for one client, and where it belongs."""

    client: str
    place: str
    text: str


def snippets(to: Address) -> tuple[Snippet, ...]:
    """Return what to copy for each client."""
    return (
        Snippet("Python: openai", tr("A script, with this package: pip install openai"), _openai(to)),
        Snippet("Python: anthropic", tr("A script, with this package: pip install anthropic"), _anthropic(to)),
        Snippet("curl", tr("A terminal on Linux or macOS"), _curl(to)),
        Snippet("PowerShell", tr("A terminal on Windows"), _powershell(to)),
        Snippet(
            "VS Code",
            tr(
                "Run “Chat: Manage Language Models”, choose Add Models, then Custom Endpoint, and enter a name, the "
                "key and Chat Completions. In the file that opens, chatLanguageModels.json, put this in the place of "
                "what is behind “models”; leave its line with the key as it is."
            ),
            _vs_code(to),
        ),
        Snippet(
            "Zed",
            tr(
                "settings.json, by “zed: open settings file”. Zed asks for the key in its provider's settings, or "
                "takes it from the variable {variable}.",
                variable=KEY_VARIABLE,
            ),
            _zed(to),
        ),
        Snippet("Continue", "~/.continue/config.yaml", _continue(to)),
        Snippet("codex", "~/.codex/config.toml", _codex(to)),
        Snippet("aider", "~/.aider.conf.yml", _aider(to)),
        Snippet("opencode", "~/.config/opencode/opencode.json", _opencode(to)),
    )


def _curl(to: Address) -> str:
    return f"""curl {shlex.quote(_chats(to))} \\
  -H 'Content-Type: application/json' \\
  -H {shlex.quote("Authorization: Bearer " + to.key)} \\
  -d {shlex.quote(_question(to))}
"""


def _powershell(to: Address) -> str:
    """A cmdlet: Windows PowerShell takes the quotes out of what it hands to programs as curl."""

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    return f"""(Invoke-RestMethod {quoted(_chats(to))} -Method Post `
  -ContentType 'application/json; charset=utf-8' `
  -Headers @{{ Authorization = {quoted("Bearer " + to.key)} }} `
  -Body {quoted(_question(to))}).choices[0].message.content
"""


def _chats(to: Address) -> str:
    return f"{to.url}/v1/chat/completions"


def _question(to: Address) -> str:
    messages = [{"role": "user", "content": "Tell me a story about a fox."}]
    # The answer comes as a whole, so it must have an end. PowerShell takes curved quotes for its own.
    return json.dumps({"model": to.model, "messages": messages, "max_tokens": 200})


def _openai(to: Address) -> str:
    return f"""from openai import OpenAI

client = OpenAI(
    base_url={_quoted(to.url + "/v1")},
    api_key={_quoted(to.key)},
)
stream = client.chat.completions.create(
    model={_quoted(to.model)},
    messages=[{{"role": "user", "content": "Tell me a story about a fox."}}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
"""


def _anthropic(to: Address) -> str:
    return f"""from anthropic import Anthropic

client = Anthropic(
    base_url={_quoted(to.url)},
    api_key={_quoted(to.key)},
)
message = client.messages.create(
    model={_quoted(to.model)},
    max_tokens=200,
    messages=[{{"role": "user", "content": "Tell me a story about a fox."}}],
)
print("".join(block.text for block in message.content if block.type == "text"))
"""


def _vs_code(to: Address) -> str:
    """The value of ``models``: VS Code keeps the key elsewhere and refers to it in the same object."""
    n_reply = to.n_ctx // _REPLY
    model = {
        "id": to.model,
        "name": to.model,
        "url": _chats(to),
        "toolCalling": True,
        "vision": to.sees,
        "maxInputTokens": to.n_ctx - n_reply,
        "maxOutputTokens": n_reply,
    }
    return _json([model])


def _zed(to: Address) -> str:
    can = {"tools": True, "images": to.sees, "parallel_tool_calls": False, "prompt_cache_key": False}
    model = {"name": to.model, "display_name": to.model, "max_tokens": to.n_ctx, "capabilities": can}
    provider = {"api_url": f"{to.url}/v1", "available_models": [model]}
    return _json({"language_models": {"openai_compatible": {NAME: provider}}})


def _continue(to: Address) -> str:
    return f"""name: Local
version: 0.0.1
schema: v1
models:
  - name: {NAME}
    provider: openai
    model: {_quoted(to.model)}
    apiBase: {_quoted(to.url + "/v1")}
    apiKey: {_quoted(to.key)}
    roles: [chat, edit, apply]
    defaultCompletionOptions:
      contextLength: {to.n_ctx}
"""


def _codex(to: Address) -> str:
    return f"""model = {_quoted(to.model)}
model_provider = "slipstream"
model_context_window = {to.n_ctx}

[model_providers.slipstream]
name = "{NAME}"
base_url = {_quoted(to.url + "/v1")}
wire_api = "responses"
http_headers = {{ Authorization = {_quoted("Bearer " + to.key)} }}
"""


def _aider(to: Address) -> str:
    return f"""model: {_quoted("openai/" + to.model)}
openai-api-base: {_quoted(to.url + "/v1")}
openai-api-key: {_quoted(to.key)}
"""


def _opencode(to: Address) -> str:
    n_reply = to.n_ctx // _REPLY
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": NAME,
        "options": {"baseURL": f"{to.url}/v1", "apiKey": to.key},
        "models": {to.model: {"name": to.model, "limit": {"context": to.n_ctx, "output": n_reply}}},
    }
    return _json(
        {
            "$schema": "https://opencode.ai/config.json",
            "provider": {"slipstream": provider},
            "model": f"slipstream/{to.model}",
        }
    )


def _quoted(text: str) -> str:
    """Return a string as JSON has it, which Python, YAML and TOML read too."""
    return json.dumps(text, ensure_ascii=False)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
