"""How our programs find a server or the library's process, start one, and speak to it.

Begin with ``http_client.py``, ``server_process.py``.
"""
