"""Simon Willison's llm: a prompt, and one that continues it."""

import json
import os
import subprocess
from pathlib import Path

folder = Path.home() / "llm"
folder.mkdir()
fields = {"model_id": "local", "model_name": os.environ["MODEL"], "api_base": os.environ["BASE_URL"]}
# JSON is YAML too.
(folder / "extra-openai-models.yaml").write_text(json.dumps([fields | {"api_key_name": "local"}]))
environment = {**os.environ, "LLM_USER_PATH": str(folder)}


def llm(*arguments: str) -> str:
    return subprocess.run(["llm", *arguments], env=environment, capture_output=True, text=True, check=True).stdout


llm("keys", "set", "local", "--value", os.environ["API_KEY"])
assert llm("-m", "local", "-o", "max_tokens", "20", "Tell me a story.").strip()
assert llm("-c", "-o", "max_tokens", "20", "And then?").strip()
