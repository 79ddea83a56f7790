"""The model library behind the server: its process, its routes, and downloads that other protocols ask for.

Begin with ``worker.py``.
"""
