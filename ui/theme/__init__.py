"""Design tokens and what is made of them: style sheet, sizes of text, icons.

Begin with ``tokens.py``.
"""
