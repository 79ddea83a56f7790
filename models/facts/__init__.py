"""The facts of a model, computed from its file's header.

Begin with ``model_facts.py``.
"""
