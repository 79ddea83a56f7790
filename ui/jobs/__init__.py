"""The jobs page: files of requests and hard questions, answered in the background.

Begin with ``jobs_page.py``.
"""
