"""The process behind ``/slipstream/library``: files, the Hub and downloads, away from the server.

Begin with ``service.py``.
"""
