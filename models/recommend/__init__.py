"""Fit reports, and recommendations among a repository's quantisations.

Begin with ``fit_report.py``.
"""
