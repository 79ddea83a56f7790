"""What crosses the pipe: requests, options, events, receipts, errors. Frozen, and needs nothing.

Begin with ``request.py``, then ``events.py``.
"""
