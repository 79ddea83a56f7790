"""Measurements, side by side in one run: ratios that a busy machine does not bend."""
