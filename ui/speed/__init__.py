"""The speed page: how fast replies are and why, and what would help.

Begin with ``speed_page.py``.
"""
