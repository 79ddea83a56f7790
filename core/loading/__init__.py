"""From options to a running engine: what fits, contexts, drafts.

Begin with ``load_engine.py``.
"""
