"""Verifying that drafts change nothing: the prompts, how they are rendered, and what is printed.

Begin with ``verification.py``.
"""
