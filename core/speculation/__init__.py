"""Speculative decoding that never loses: proposers, acceptance, and the decision how much to draft.

Begin with ``proposer.py``.
"""
