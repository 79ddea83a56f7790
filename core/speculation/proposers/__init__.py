"""Everything that proposes tokens: n-grams, grammars, draft models, heads.

Begin with ``proposer.py``, then ``free_proposers.py`` and ``draft_model.py``. A new one is a subclass of
those in ``proposer.py``, and ``core/loading/load_drafts.py`` makes it.
"""
