"""The command line: what becomes of what was typed, and of an error.

Begin with ``main.py``.
"""
