"""Files that go with a message: reading them, showing them, and choosing what of them is sent.

Begin with ``shelf.py``.
"""
