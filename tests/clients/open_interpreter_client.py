"""Open Interpreter: two turns with a stream; code that it asks for is not run."""

import os

from interpreter import interpreter

interpreter.offline, interpreter.disable_telemetry, interpreter.auto_run = True, True, False
interpreter.llm.model = f"openai/{os.environ['MODEL']}"
interpreter.llm.api_base, interpreter.llm.api_key = os.environ["BASE_URL"], os.environ["API_KEY"]
interpreter.llm.context_window, interpreter.llm.max_tokens = 8192, 40
for text in ("Hello", "Thank you"):
    said = ""
    for piece in interpreter.chat(text, display=False, stream=True):
        if piece.get("type") == "confirmation":
            break
        said += str(piece.get("content") or "")
    assert said, text
