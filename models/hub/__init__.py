"""The Hugging Face Hub: settings, search, repositories, and headers of files before they are downloaded.

Begin with ``client.py``.
"""
