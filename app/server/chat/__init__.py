"""The one call behind every protocol: messages or prompts in, pieces of replies out; and deep replies.

Begin with ``call.py``, then ``run.py``.
"""
