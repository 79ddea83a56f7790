"""The window: it places the parts and connects them.

Begin with ``main_window.py``; ``chat_area.py`` is its page of chats.
"""
