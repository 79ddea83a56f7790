"""The messages of a chat.

Begin with ``transcript.py``.
"""
