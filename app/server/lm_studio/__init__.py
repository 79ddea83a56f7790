"""LM Studio's own routes: its chat, OpenAI's calls with what they measured, and models with what they are.

Begin with ``chat.py``.
"""
