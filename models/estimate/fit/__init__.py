"""Whether a model fits a machine, and the best plan for loading it there.

Begin with ``plan.py``, then ``search.py``.
"""
