"""Draft models and heads for a model: which fit, their expected gain, and the measured one.

Begin with ``partner.py``, then ``gain.py``.
"""
