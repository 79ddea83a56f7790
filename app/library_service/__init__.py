"""The process behind the library page: files, the Hub and downloads, away from the window and from the server.

Begin with ``service.py``.
"""
