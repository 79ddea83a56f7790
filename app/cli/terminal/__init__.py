"""What commands share that read and write a terminal: sentences, tables, progress, options.

Begin with ``text.py``.
"""
