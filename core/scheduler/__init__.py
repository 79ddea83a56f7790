"""Requests from arrival to their rows in a step: lanes, waiting, preemption, prefill chunks.

Begin with ``sequence.py``, then ``scheduler.py`` and ``planner.py``. ``images.py`` has the images of prompts.
"""
