"""mem0: a memory is kept, embedded and found again, by its providers for OpenAI and LM Studio."""

import os
from pathlib import Path

os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": os.environ["API_KEY"]}

from mem0 import Memory

BASE_URL, KEY, MODEL = (os.environ[name] for name in ("BASE_URL", "API_KEY", "MODEL"))
openai = {"model": MODEL, "openai_base_url": BASE_URL, "api_key": KEY}
lmstudio = {"model": MODEL, "lmstudio_base_url": BASE_URL, "api_key": KEY}
for provider, where in (("openai", openai), ("lmstudio", lmstudio)):
    folder = Path.home() / provider
    store = {"path": str(folder), "embedding_model_dims": 384, "on_disk": True}
    memory = Memory.from_config(
        {
            "llm": {"provider": provider, "config": where | {"max_tokens": 100, "temperature": 0.0}},
            "embedder": {"provider": provider, "config": where | {"embedding_dims": 384}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(Path.home() / f"{provider}.db"),
        }
    )
    memory.add("I like green boats.", user_id="ann")  # the toy model finds no facts worth keeping
    kept = memory.add("I like green boats.", user_id="ann", infer=False)["results"]
    found = memory.search("Which boats?", filters={"user_id": "ann"})["results"]
    assert kept[0]["memory"] in [one["memory"] for one in found], (kept, found)
