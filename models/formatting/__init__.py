"""Numbers, names and values as text.

Begin with ``figures.py``.
"""
