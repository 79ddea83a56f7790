"""How fast a model decodes on a machine: predicted from its header, corrected by what was measured.

Begin with ``work.py``, then ``efficiency.py``.
"""
