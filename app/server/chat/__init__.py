"""The one call behind every protocol's chat: messages in, pieces of replies out; and deep replies.

Begin with ``call.py``.
"""
