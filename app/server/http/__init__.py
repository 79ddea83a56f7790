"""HTTP: the socket, what is refused at the door, errors, server-sent events.

Begin with ``limits.py``, ``errors.py``.
"""
