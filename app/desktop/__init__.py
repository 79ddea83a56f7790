"""The desktop app: the window first, then its private server.

Begin with ``desktop_app.py``.
"""
