"""This machine: what it is, what was measured on it, and what is remembered of that.

Begin with ``host.py``, then ``known_machine.py``. ``core/llama/devices.py`` lists GPUs with their memory.
"""
