"""What quantising a model here needs to know: types, what may become what, progress. The work is the core's.

Begin with ``plan.py``.
"""
