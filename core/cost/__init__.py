"""What steps cost: measured times, what they read, threads.

Begin with ``cost_model.py``.
"""
