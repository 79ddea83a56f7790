"""What crosses the pipe: requests, options, events, receipts, errors. Frozen values.

Begin with ``request.py``, then ``messages.py``.
"""
