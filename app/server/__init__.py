"""The OpenAI-style endpoint: the only door to the engine."""
