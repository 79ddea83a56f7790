"""llama-server's own routes: completion, properties, slots and metrics, for programs that were written for it.

Begin with ``completion.py``.
"""
