"""The messages of a chat.

Begin with ``transcript.py``; ``receipts.py`` says what is under a reply.
"""
