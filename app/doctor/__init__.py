"""The check-up: what this machine has, what works, and what to do about the rest.

Begin with ``checks.py``.
"""
