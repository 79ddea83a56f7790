"""Mistral's own client, which checks every field: a chat, a stream, a form, a tool and vectors."""

import json
import os

from mistralai.client import Mistral

client = Mistral(api_key=os.environ["API_KEY"], server_url=os.environ["BASE"])
asked = {"model": os.environ["MODEL"], "max_tokens": 80, "temperature": 0}
hello = [{"role": "user", "content": "Hello"}]
reply = client.chat.complete(**asked, messages=hello)
assert reply.choices[0].message.content
assert reply.usage.completion_tokens
with client.chat.stream(**asked, messages=hello) as stream:
    events = list(stream)
assert "".join(event.data.choices[0].delta.content or "" for event in events if event.data.choices)
schema = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"]}
form = {"type": "json_schema", "json_schema": {"name": "choice", "schema_definition": schema, "strict": True}}
reply = client.chat.complete(**asked, messages=hello, response_format=form)
assert json.loads(reply.choices[0].message.content)["size"]
city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tool = {"type": "function", "function": {"name": "get_weather", "description": "Get the weather.", "parameters": city}}
messages = [{"role": "user", "content": "What is the weather in Paris?"}]
message = client.chat.complete(**asked, messages=messages, tools=[tool], tool_choice="any").choices[0].message
(call,) = message.tool_calls
assert json.loads(call.function.arguments) == {"city": "Paris"}
messages += [message, {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": "sunny"}]
assert client.chat.complete(**asked, messages=messages, tools=[tool]).choices[0].message.content
assert len(client.embeddings.create(model=asked["model"], inputs=["fox", "mill"]).data) == 2
