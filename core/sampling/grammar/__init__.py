"""Constrained output: grammars over a vocabulary, and the state of one reply in its grammar.

Begin with ``grammar_compiler.py``.
"""
