"""The commands, one file each; what is slow to import is imported when a command runs.

Begin with ``serve.py``.
"""
