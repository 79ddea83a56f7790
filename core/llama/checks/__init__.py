"""What this build of llama.cpp is, and whether it works here.

Begin with ``selftest.py``.
"""
