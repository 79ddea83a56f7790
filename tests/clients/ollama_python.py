"""ollama-python: a tool whose result goes back, a stream, a text, vectors, and the models."""

import os

import ollama
from slots import wait_until_free

MODEL = os.environ["MODEL"]
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
messages = [{"role": "user", "content": "What is the weather in Paris?"}]
options = {"temperature": 0, "num_predict": 80}

client = ollama.Client(host=os.environ["BASE"], headers={"Authorization": f"Bearer {os.environ['API_KEY']}"})
names = [model.model for model in client.list().models]
assert f"{MODEL}:latest" in names
assert "tools" in client.show(MODEL).capabilities
first = client.chat(MODEL, messages, tools=[TOOL], options=options)
assert first.message.tool_calls[0].function.arguments == {"city": "Paris"}
messages += [first.message, {"role": "tool", "content": "sunny", "tool_name": "get_weather"}]
assert "".join(
    part.message.content for part in client.chat(MODEL, messages, tools=[TOOL], options=options, stream=True)
)
left = client.chat(MODEL, messages, options={"num_predict": 12_000, "ignore_eos": True}, stream=True)
next(left)
left.close()
wait_until_free()
assert client.generate(MODEL, "Tell me a story.", options=options).response
assert len(client.embed(MODEL, ["one", "two"]).embeddings) == 2
assert client.ps().models[0].model == f"{MODEL}:latest"
