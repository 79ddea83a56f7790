"""LiteLLM's proxy in front of the server, by six of its providers: chats, streams, tools, responses, messages."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import openai

MODELS = {
    "openai": "BASE_URL",
    "hosted_vllm": "BASE_URL",
    "lm_studio": "BASE_URL",
    "llamafile": "BASE_URL",
    "ollama_chat": "BASE",
    "anthropic": "BASE",
}
listed = [
    {
        "model_name": name,
        "litellm_params": {
            "model": f"{name}/{os.environ['MODEL']}",
            "api_base": os.environ[base],
            "api_key": os.environ["API_KEY"],
        },
    }
    for name, base in MODELS.items()
]
Path("config.yaml").write_text(json.dumps({"model_list": listed}))
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
plain = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
command = ["litellm", "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
with subprocess.Popen(command, env={**os.environ, **plain}) as proxy:
    try:
        for _ in range(240):
            time.sleep(0.5)
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness").read()
                break
            except OSError:
                continue
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
        city = {"type": "object", "properties": {"city": {"enum": ["Paris"]}}, "required": ["city"]}
        function = {"name": "get_weather", "description": "Get the weather.", "parameters": city}
        for name in MODELS:
            asked = {"model": name, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 80}
            create = client.chat.completions.create
            assert create(**asked).choices[0].message.content, name
            assert any(chunk.choices[0].delta.content for chunk in create(**asked, stream=True) if chunk.choices), name
            forced = {} if name == "ollama_chat" else {"tool_choice": "required"}  # Ollama's protocol cannot say it
            called = create(**asked, tools=[{"type": "function", "function": function}], **forced).choices[0].message
            assert called.tool_calls or not forced, name
        assert client.responses.create(model="openai", input="Hello", max_output_tokens=20).output_text
        assert len(client.embeddings.create(model="openai", input="fox").data[0].embedding) > 1
        message = {"model": "anthropic", "max_tokens": 20, "messages": [{"role": "user", "content": "Hello"}]}
        assert client.post("/messages", body=message, cast_to=object)["content"][0]["text"]
    finally:
        proxy.terminate()
