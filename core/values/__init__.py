"""What crosses the pipe: requests, options, events, receipts, errors. Frozen values without dependencies.

Begin with ``request.py``, then ``messages.py``.
"""
