"""DSPy: a chat, a text and a response; and a program whose answer is one of two words."""

import os

import dspy

where = {"api_base": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "cache": False, "max_tokens": 60}
for kind in ("chat", "text", "responses"):
    assert dspy.LM(f"openai/{os.environ['MODEL']}", model_type=kind, **where)("Hello")
