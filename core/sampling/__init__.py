"""From logits to a token, from tokens to text, and the grammars that replies follow.

Begin with ``sampler.py``.
"""
