"""Child processes with a pipe to each; and the engine's process as the server sees it, which it keeps alive.

Begin with ``supervisor.py``; ``child_process.py`` starts every process. What runs in the engine's process is
``core/loading/worker.py``.
"""
