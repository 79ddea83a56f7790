"""The server page: how other programs use this server, and what it does for them.

Begin with ``server_page.py``.
"""
