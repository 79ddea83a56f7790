"""The bar with the engine's gauges.

Begin with ``speed_bar.py``.
"""
