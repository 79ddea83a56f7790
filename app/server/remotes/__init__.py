"""Other servers whose models are named here like our own: requests pass through to them.

Begin with ``pass_through.py``.
"""
