"""Chatting in a terminal: the parts of ``slipstream chat``.

Begin with ``interactive.py``.
"""
