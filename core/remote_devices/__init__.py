"""Devices of other machines: a worker lends them, an engine borrows them, and both prove that they know a token.

Begin with ``borrowing.py``, which also has what both sides say; then ``lending.py``.
"""
