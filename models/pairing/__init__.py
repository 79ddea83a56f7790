"""Which small models and heads may draft for a model, what that would gain, and what was measured.

Begin with ``partner.py``, then ``gain.py``.
"""
