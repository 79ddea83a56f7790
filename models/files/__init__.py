"""Files on this disk: written whole, named safely, locked, and known by where they came from.

Begin with ``disk.py``, then ``integrity.py``.
"""
