"""The Hugging Face Hub: settings, search, repositories, and headers of files that are still there.

Begin with ``client.py``.
"""
