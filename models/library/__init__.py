"""What the library's process and whoever shows the library say to each other: frozen values, and lines of JSON.

Begin with ``requests.py``.
"""
