"""Whether a model fits a machine, and the best way to place it there.

Begin with ``plan.py``, then ``search.py``.
"""
