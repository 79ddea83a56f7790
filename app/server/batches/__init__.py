"""OpenAI's files and batches: a file of requests is run in the batch lane, and goes on after a restart.

Begin with ``batch_runner.py``.
"""
