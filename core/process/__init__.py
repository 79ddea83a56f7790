"""The engine's process: who keeps it alive, and what runs in it.

Begin with ``supervisor.py`` (server's side), ``worker.py`` (engine's side).
"""
