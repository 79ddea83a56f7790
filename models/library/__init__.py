"""Requests to the library and their answers: frozen values, and the server's routes for them.

Begin with ``requests.py``.
"""
