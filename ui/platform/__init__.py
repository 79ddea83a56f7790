"""What Qt and the system ask of a window: threads, child processes, one instance.

Begin with ``child_process.py``.
"""
