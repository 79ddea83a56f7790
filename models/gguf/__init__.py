"""GGUF headers: metadata and tensor infos, never the weights.

Begin with ``header.py``.
"""
