"""Chats to files and back: our own JSON, Markdown, and what other programs export.

Begin with ``exchange.py``.
"""
