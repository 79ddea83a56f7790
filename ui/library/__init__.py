"""The library: models of this machine, the Hub, downloads.

Begin with ``library_page.py``.
"""
