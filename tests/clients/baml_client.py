"""BAML: a text by its own client, in Rust, as from OpenAI in three ways, Anthropic and Ollama."""

import subprocess
import sys
from pathlib import Path

CLIENTS = {
    "openai": "base_url env.BASE_URL",
    "openai-generic": "base_url env.BASE_URL",
    "openai-responses": "base_url env.BASE_URL",
    "anthropic": "base_url env.BASE",
    "ollama": "base_url env.BASE_URL",
}
parts = []
for provider, address in CLIENTS.items():
    name = provider.title().replace("-", "")
    limit = "max_output_tokens" if provider == "openai-responses" else "max_tokens"
    parts.append(f"""
client<llm> {name} {{
  provider {provider}
  options {{
    {address}
    api_key env.API_KEY
    model env.MODEL
    {limit} 60
  }}
}}
function Say{name}(text: string) -> string {{
  client {name}
  prompt #"{{{{ _.role("system") }}}}You are a helpful assistant.{{{{ _.role("user") }}}}{{{{ text }}}}"#
}}
test Says{name} {{
  functions [Say{name}]
  args {{ text "Hello" }}
  @@assert({{{{ this|length > 0 }}}})
}}
""")
folder = Path("baml_src")
folder.mkdir()
(folder / "main.baml").write_text("".join(parts))
command = [Path(sys.executable).with_name("baml-cli"), "test", "--from", "baml_src", "--parallel", "1"]
ended = subprocess.run(command, capture_output=True, text=True, check=False)
assert ended.returncode == 0, ended.stdout + ended.stderr
