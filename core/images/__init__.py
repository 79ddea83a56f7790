"""Images in prompts: files that are checked and decoded, and a thread that turns them into embeddings.

Begin with ``prompt_images.py``.
"""
