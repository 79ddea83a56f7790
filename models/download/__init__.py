"""Downloads of models: parallel, resumable at any byte, checked against the Hub's hash before they are installed.

Begin with ``queue.py``, then ``model_download.py``; ``pieces.py`` has the journal by which a download resumes.
"""
