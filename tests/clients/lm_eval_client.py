"""lm-eval: a made task of each kind, by completions with the server's own tokenizer, and by chats."""

import json
import os
import subprocess
from pathlib import Path

TASKS = {
    "choice": ("multiple_choice", "{{q}}", "0", {"doc_to_choice": "{{[a, b]}}"}, "acc"),
    "rolling": ("loglikelihood_rolling", "", "{{q}} {{a}}", {}, "bits_per_byte"),
    "writing": (
        "generate_until",
        "{{q}}",
        "{{a}}",
        {"generation_kwargs": {"until": ["\n"], "max_gen_toks": 8}},
        "exact_match",
    ),
}
asked = [
    {"q": "Once upon a", "a": "time there was a fox", "b": "zzx qqv wwk 11 %%"},
    {"q": "The fox ran to the", "a": "forest.", "b": "&&( 99 kk"},
]
data = Path("asked.jsonl")
data.write_text("".join(json.dumps(one) + "\n" for one in asked))
for name, (kind, text, target, more, metric) in TASKS.items():
    task = {"task": name, "output_type": kind, "doc_to_text": text, "doc_to_target": target, **more}
    task |= {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data.absolute())}}}
    task |= {"test_split": "test", "metric_list": [{"metric": metric}]}
    Path(f"{name}.yaml").write_text(json.dumps(task))
offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": os.environ["API_KEY"]}


def results(model: str, route: str, tasks: str, *options: str, more: str = "") -> dict:
    """What came of the tasks."""
    arguments = f"model={os.environ['MODEL']},base_url={os.environ['BASE_URL']}/{route}{more}"
    command = ["lm_eval", "--model", model, "--model_args", arguments, "--tasks", tasks, *options]
    command += ["--include_path", ".", "--output_path", model]
    subprocess.run(command, env={**os.environ, **offline}, check=True, timeout=300)
    (found,) = Path(model).rglob("*.json")
    return json.loads(found.read_text())["results"]


remote = f",tokenizer_backend=auto,auth_token={os.environ['API_KEY']},max_length=1024"
found = results("local-completions", "completions", ",".join(TASKS), "--batch_size", "2", more=remote)
assert found["choice"]["acc,none"] == 1.0, "the likely text is told from the unlikely one"
assert 0 < found["rolling"]["bits_per_byte,none"] < 10
assert found["writing"]
assert results("local-chat-completions", "chat/completions", "writing", "--apply_chat_template")
