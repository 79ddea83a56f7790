"""Devices of other machines: a worker lends them, an engine borrows them, and both prove that they know a token.

Begin with ``handshake.py``; then ``lending.py`` (the worker's side) and ``borrowing.py`` (the engine's).
"""
