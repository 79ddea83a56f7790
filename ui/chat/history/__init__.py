"""The list of all chats.

Begin with ``history_panel.py``.
"""
