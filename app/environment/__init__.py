"""What a process of ours stands on: folders, exit codes, standard streams, early signals.

Begin with ``paths.py``.
"""
