"""A file of requests, run to its end: what ``slipstream batch`` does.

Begin with ``batch_run.py``.
"""
