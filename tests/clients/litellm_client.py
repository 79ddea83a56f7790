"""LiteLLM: three turns with a tool, in which its own messages go back as they are."""

import json
import os

import litellm

TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def ask(messages, **fields):
    return litellm.completion(
        model=f"openai/{os.environ['MODEL']}",
        api_base=os.environ["BASE_URL"],
        api_key=os.environ["API_KEY"],
        messages=messages,
        **fields,
    )


messages = [{"role": "user", "content": "What is the weather in Paris?"}]
answer = ask(messages, tools=[TOOL], temperature=0)
messages.append(answer.choices[0].message)
(call,) = answer.choices[0].message.tool_calls
assert json.loads(call.function.arguments) == {"city": "Paris"}
messages.append({"role": "tool", "tool_call_id": call.id, "content": '{"weather": "sunny"}'})
answer = ask(messages, tools=[TOOL], temperature=0, max_tokens=40)
messages += [answer.choices[0].message, {"role": "user", "content": "Thank you."}]
assert ask(messages, max_tokens=20).choices[0].message.content
assert "".join(chunk.choices[0].delta.content or "" for chunk in ask(messages, max_tokens=20, stream=True))
