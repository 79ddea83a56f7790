"""What Qt and the system ask of a window: threads, the display, one instance.

Begin with ``gui_thread.py``.
"""
