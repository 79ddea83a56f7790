"""What is drafted in a step, by whom and how much: what pays, within the latency bound and the risk budget.

Begin with ``speculator.py``; ``draft_length.py`` says how many tokens are worth it.
"""
