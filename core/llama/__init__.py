"""The only room that touches llama.cpp: typed wrappers with explicit close.

Begin with ``context.py``.
"""
