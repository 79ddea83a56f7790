"""The OpenAI-style endpoint: the only door to the engine.

Begin with ``main.py``, then ``application.py``.
"""
