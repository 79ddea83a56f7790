"""The server and the library's process as seen from the window, and the values that they send.

Begin with ``api.py``.
"""
