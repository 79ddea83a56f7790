"""Work that takes minutes and runs as a process of its own: batches, tests of pairs, smaller copies, verifications.

Begin with ``program_run.py``, which follows a command of this program; each folder is one kind of job.
"""
