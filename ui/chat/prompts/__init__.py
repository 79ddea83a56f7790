"""Prompts that are kept: texts for messages and instructions for chats, with variables.

Begin with ``prompt_library.py``.
"""
