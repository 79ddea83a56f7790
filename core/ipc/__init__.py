"""Pipes to child processes, and the ways to start one.

Begin with ``child_process.py``.
"""
