"""Tests of pairs on this machine, each in a process of its own.

Begin with ``pair_test.py``.
"""
