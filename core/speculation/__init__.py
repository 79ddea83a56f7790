"""Speculative decoding that never loses: drafters, acceptance, and the decision how much to draft.

Begin with ``proposer.py``.
"""
