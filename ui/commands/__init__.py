"""Everything that can be done by name: the command palette, and the list of shortcuts.

Begin with ``command.py``.
"""
