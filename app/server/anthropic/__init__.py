"""Anthropic's protocol: messages in its blocks and events.

Begin with ``messages.py``.
"""
