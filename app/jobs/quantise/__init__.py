"""Quantises a model in a process of its own.

Begin with ``job.py``.
"""
