"""What every process needs: folders, exit codes, standard streams, early signals.

Begin with ``paths.py``.
"""
