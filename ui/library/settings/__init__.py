"""The settings of one model.

Begin with ``settings_dialog.py``.
"""
