"""The OpenAI-style protocol: bodies, completions, chats, tools, deep replies.

Begin with ``chat.py``.
"""
