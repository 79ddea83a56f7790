"""Widgets that more than one page uses.

Begin with ``icon_button.py``.
"""
