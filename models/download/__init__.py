"""Downloads of models: parallel, resumable at any byte, checked against the Hub's hash before they count.

Begin with ``queue.py``, then ``model_download.py``.
"""
