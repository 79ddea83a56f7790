"""Everything that proposes tokens: n-grams, grammars, draft models, heads.

Begin with ``ngram.py`` (the smallest), then ``draft_model.py``. A new one follows ``core/speculation/proposer.py``, and
``core/loading/load_drafts.py`` makes it.
"""
