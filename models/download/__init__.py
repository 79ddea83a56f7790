"""Downloads of models: parallel, resumable at any byte, checked against the Hub's hash before they are installed.

Begin with ``queue.py``, then ``model_download.py``; ``resume.py`` says how a download resumes.
"""
