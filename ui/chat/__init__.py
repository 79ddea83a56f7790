"""The chat page.

Begin with ``chat_page.py``, then ``chat_sessions.py``.
"""
