"""Chats on disk.

Begin with ``store.py``.
"""
