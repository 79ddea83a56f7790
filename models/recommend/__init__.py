"""Fit reports, and which of a repository's quantisations to take.

Begin with ``fit_report.py``.
"""
