"""aider with the configuration that the window shows: one message."""

import json
import os
import subprocess
from pathlib import Path

(Path.home() / ".aider.conf.yml").write_text(json.loads(os.environ["SNIPPETS"])["aider"])
switches = (
    "--no-git",
    "--yes-always",
    "--no-check-update",
    "--no-show-model-warnings",
    "--no-analytics",
    "--no-pretty",
)
command = ["aider", *switches, "--message", "Say hello"]
said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
assert "tokens:" in said.casefold(), said  # it tells what it sent and got once a reply is there
