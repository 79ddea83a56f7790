"""The server and its library as seen from the window, and the values that they send.

Begin with ``api.py``, then ``reply_stream.py``.
"""
