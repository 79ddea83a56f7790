"""What can be asked of the library and what it answers: frozen values, and the routes of the server.

Begin with ``requests.py``.
"""
