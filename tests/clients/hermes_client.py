"""Hermes Agent: one shot, set up as its documentation says for a server of one's own."""

import os
import subprocess
from pathlib import Path

folder = Path.home() / ".hermes"
folder.mkdir()
# It refuses models with less than 64,000 tokens. A prompt of it has about 16,000.
(folder / "config.yaml").write_text(f"""model:
  provider: custom
  base_url: {os.environ["BASE_URL"]}
  api_key: {os.environ["API_KEY"]}
  default: {os.environ["MODEL"]}
  context_length: 65536
""")
said = subprocess.check_output(["hermes", "-z", "Say hello."], text=True, stdin=subprocess.DEVNULL, timeout=500)
assert said.strip(), said
