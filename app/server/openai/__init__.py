"""OpenAI's protocol: chats and text completions in its shapes.

Begin with ``chat.py``.
"""
