"""Files on this disk: atomic writes, safe names, locks, and records of where a file came from.

Begin with ``disk.py``, then ``integrity.py``.
"""
