"""ShellGPT: one question, set up by its variables."""

import os
import subprocess

where = {"API_BASE_URL": os.environ["BASE_URL"], "OPENAI_API_KEY": os.environ["API_KEY"]}
where |= {"DEFAULT_MODEL": os.environ["MODEL"], "USE_LITELLM": "false", "OPENAI_USE_FUNCTIONS": "false"}
command = ["sgpt", "--no-md", "--no-cache", "Hello there"]
assert subprocess.check_output(command, env={**os.environ, **where}, stdin=subprocess.DEVNULL).strip()
