"""What steps cost: measured times, what they read, threads.

Begin with ``cost_model.py``; ``threads.py`` says how many threads a step has.
"""
