"""openai-python: every route that it knows and this server has."""

import json
import os
import subprocess
import sys
import time

import openai
from slots import wait_until_free

client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0)
MODEL = os.environ["MODEL"]
TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
asked = [{"role": "user", "content": "What is the weather in Paris?"}]

assert MODEL in [model.id for model in client.models.list()]
assert client.models.retrieve(MODEL).id == MODEL
answer = client.chat.completions.create(
    model=MODEL, messages=asked, tools=[{"type": "function", "function": TOOL}], temperature=0
)
(call,) = answer.choices[0].message.tool_calls
assert json.loads(call.function.arguments) == {"city": "Paris"}
# The answer goes back as the client gives it, with all its keys.
turns = [*asked, answer.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
assert client.chat.completions.create(model=MODEL, messages=turns, max_tokens=20).choices[0].message.content
with client.chat.completions.stream(model=MODEL, messages=asked, max_completion_tokens=20) as stream:
    assert any(event.type == "content.delta" for event in stream)
assert client.completions.create(model=MODEL, prompt="Once", max_tokens=4, logprobs=2).choices[0].logprobs
endless = {"model": MODEL, "stream": True, "extra_body": {"ignore_eos": True}}
for ask, fields in (
    (client.chat.completions.create, {"messages": asked, "max_tokens": 12_000}),
    (client.completions.create, {"prompt": "Once", "max_tokens": 12_000}),
    (client.responses.create, {"input": "Hello", "max_output_tokens": 12_000}),
):
    left = ask(**fields, **endless)
    next(iter(left))
    left.close()
    wait_until_free()
first = client.responses.create(model=MODEL, input="Hello", max_output_tokens=20)
second = client.responses.create(model=MODEL, input="And you?", previous_response_id=first.id, max_output_tokens=20)
assert client.responses.retrieve(second.id).output_text == second.output_text
assert client.responses.input_items.list(second.id).data[0].content[0].text == "And you?"
client.responses.delete(second.id)
found = client.embeddings.create(model=MODEL, input=["a fox", "a boat"], dimensions=8).data
assert [len(one.embedding) for one in found] == [8, 8]
bodies = {"chat/completions": {"messages": asked, "max_tokens": 4}, "embeddings": {"input": "a fox"}}
lines = [{"custom_id": f"/v1/{at}", "method": "POST", "url": f"/v1/{at}", "body": body} for at, body in bodies.items()]
file = client.files.create(file=("lines.jsonl", "\n".join(map(json.dumps, lines)).encode()), purpose="batch")
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
while (batch := client.batches.retrieve(batch.id)).status != "completed":
    time.sleep(0.1)
assert batch.request_counts.completed == 2
assert len(client.files.content(batch.output_file_id).text.splitlines()) == 2
assert batch.id in [one.id for one in client.batches.list()]
client.files.delete(file.id)
assert file.id not in [one.id for one in client.files.list()]
refusal = None
try:
    client.audio.speech.create(model=MODEL, voice="alloy", input="Hello")
except openai.APIStatusError as error:
    refusal = error
assert refusal is not None
assert refusal.status_code == 501
shown = json.loads(os.environ["SNIPPETS"])["Python: openai"]  # as the window has it
assert subprocess.check_output([sys.executable, "-c", shown]).strip()
