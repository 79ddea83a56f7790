"""The model library as commands and services use it: names, folders, removal, repair.

Begin with ``find_model.py``.
"""
