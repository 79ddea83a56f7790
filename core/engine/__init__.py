"""The step: draft, plan, run, commit.

Begin with ``engine.py``: step().
"""
