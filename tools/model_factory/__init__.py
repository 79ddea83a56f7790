"""Makes model files for tests and benchmarks.

Begin with ``gguf_factory.py``.
"""
