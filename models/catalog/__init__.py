"""The models on this machine, and a short list of models to begin with.

Begin with ``catalog.py``.
"""
