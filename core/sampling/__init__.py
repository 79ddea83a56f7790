"""From logits to a token, and the grammars and bounds of thought that replies follow.

Begin with ``sampler.py``.
"""
