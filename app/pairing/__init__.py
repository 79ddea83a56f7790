"""Which model drafts for which: the candidates, the choice, and the test of a pair.

Begin with ``service.py``.
"""
