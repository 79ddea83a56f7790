"""``slipstream models``: its commands, one file each.

Begin with ``commands.py``.
"""
