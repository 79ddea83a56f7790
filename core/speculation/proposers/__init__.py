"""Everything that proposes tokens: n-grams, grammars, draft models, heads.

Begin with ``ngram.py`` (the smallest), then ``draft_model.py``.
"""
