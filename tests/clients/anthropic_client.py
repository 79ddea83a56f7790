"""anthropic-python: a message, a stream, and a tool whose result goes back."""

import json
import os
import subprocess
import sys

import anthropic
from slots import wait_until_free

client = anthropic.Anthropic(base_url=os.environ["BASE"], api_key=os.environ["API_KEY"], max_retries=0)
MODEL = os.environ["MODEL"]
TOOL = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
messages = [{"role": "user", "content": "What is the weather in Paris?"}]

first = client.messages.create(model=MODEL, max_tokens=80, messages=messages, tools=[TOOL])
call = first.content[-1]
assert call.input == {"city": "Paris"}
result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
with client.messages.stream(model=MODEL, max_tokens=40, messages=messages, tools=[TOOL]) as stream:
    assert "".join(stream.text_stream)
endless = {"max_tokens": 12_000, "extra_body": {"ignore_eos": True}}
with client.messages.stream(model=MODEL, messages=messages, **endless) as left:
    next(iter(left.text_stream))
wait_until_free()
assert client.messages.count_tokens(model=MODEL, messages=messages, tools=[TOOL]).input_tokens
shown = json.loads(os.environ["SNIPPETS"])["Python: anthropic"]  # as the window has it
assert subprocess.check_output([sys.executable, "-c", shown]).strip()
