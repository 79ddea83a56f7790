"""Devices of other machines: a worker lends them, an engine borrows them, and a token is proved between both.

Begin with ``handshake.py``; then ``lending.py`` (the worker's side) and ``borrowing.py`` (the engine's).
"""
