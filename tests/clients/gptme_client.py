"""gptme: a question with its tools, in two of its forms, set up as a provider of one's own."""

import os
import subprocess
from pathlib import Path

folder = Path.home() / ".config" / "gptme"
folder.mkdir(parents=True)
(folder / "config.toml").write_text(f"""[user]
[prompt]
[env]
[[providers]]
name = "slipstream"
base_url = "{os.environ["BASE_URL"]}"
api_key = "{os.environ["API_KEY"]}"
default_model = "{os.environ["MODEL"]}"
""")
for form in ("markdown", "tool"):
    options = ["--non-interactive", "--no-confirm", "--tool-format", form, "--tools", "shell,read"]
    command = ["gptme", "-m", f"slipstream/{os.environ['MODEL']}", *options, "Say hello"]
    said = subprocess.check_output(command, text=True, stdin=subprocess.DEVNULL, timeout=250)
    assert "Assistant" in said, said
