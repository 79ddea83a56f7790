"""huggingface_hub: a chat, a stream, a form and a tool by its client for inference."""

import json
import os

from huggingface_hub import InferenceClient

client = InferenceClient(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
asked = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 80}
reply = client.chat_completion(**asked)
assert reply.choices[0].message.content
assert reply.usage.completion_tokens
chunks = list(client.chat_completion(**asked, stream=True, stream_options={"include_usage": True}))
assert any(chunk.choices[0].delta.content for chunk in chunks if chunk.choices)
assert chunks[-1].usage.completion_tokens
schema = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"]}
form = {"type": "json_schema", "json_schema": {"name": "choice", "schema": schema, "strict": True}}
assert json.loads(client.chat_completion(**asked, response_format=form).choices[0].message.content)["size"]
city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tool = {"type": "function", "function": {"name": "get_weather", "description": "Get the weather.", "parameters": city}}
asked["messages"] = [{"role": "user", "content": "What is the weather in Paris?"}]
(call,) = client.chat_completion(**asked, tools=[tool], tool_choice="auto").choices[0].message.tool_calls
assert json.loads(call.function.arguments) == {"city": "Paris"}
