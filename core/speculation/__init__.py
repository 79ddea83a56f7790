"""Speculative decoding that never loses: what is drafted in a step, by whom and how much.

Begin with ``speculator.py``; ``draft_length.py`` says how many tokens are worth it, within the latency bound.
``draft_state.py`` has the risk budget.
"""
