"""Quantising: types, plans and progress as values. The core does the work.

Begin with ``plan.py``.
"""
