"""What a model file says about itself, worked out from its header.

Begin with ``model_facts.py``.
"""
