"""Fit reports of this machine: of models here, on the Hub, and in the list to begin with.

Begin with ``fit_reports.py``.
"""
