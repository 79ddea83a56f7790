"""What a model writes, taken apart while it comes: content, reasoning, tool calls.

Begin with ``pieces.py``.
"""
