"""Ollama's protocol: chats, texts, vectors and models in its shapes, for programs that know nothing else.

Begin with ``chat.py``.
"""
