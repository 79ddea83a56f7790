"""The models that are there, and those to begin with.

Begin with ``catalog.py``.
"""
