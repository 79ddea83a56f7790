"""The settings page: everything that can be set once for the whole app.

Begin with ``settings_page.py``.
"""
