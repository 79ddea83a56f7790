"""mini-swe-agent: two steps of a task, through LiteLLM."""

import json
import os
import subprocess
from pathlib import Path

model = {"model_name": f"openai/{os.environ['MODEL']}", "cost_tracking": "ignore_errors"}
where = {"api_base": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"]}
model["model_kwargs"] = where | {"temperature": 0.0, "max_tokens": 200}
agent = {"mode": "yolo", "step_limit": 2, "cost_limit": 0}
Path("own.yaml").write_text(json.dumps({"agent": agent, "model": model}))  # JSON is YAML too
environment = {**os.environ, "MSWEA_CONFIGURED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
options = ["-c", "mini.yaml", "-c", "own.yaml", "-y", "--exit-immediately", "-o", "done.json", "-t", "Say hello"]
subprocess.run(["mini", *options], env=environment, stdin=subprocess.DEVNULL, check=True, timeout=250)
done = json.loads(Path("done.json").read_text())
assert done["info"]["model_stats"]["api_calls"] == 2, done
