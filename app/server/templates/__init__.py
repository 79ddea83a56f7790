"""Chat templates, rendered in a process of its own under limits.

Begin with ``chat_template.py``.
"""
