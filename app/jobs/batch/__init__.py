"""A file of requests, run to its end: what ``slipstream batch`` does.

Begin with ``batch_run.py``; ``result_file.py`` is the record by which a run goes on after a stop.
"""
