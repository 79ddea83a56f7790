"""From options to a running engine, in a process of its own: what fits, contexts, drafts.

Begin with ``worker.py``, which is the process, then ``load_engine.py``.
"""
