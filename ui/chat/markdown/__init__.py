"""Replies as formatted text, also while they grow.

Begin with ``markdown_view.py``.
"""
