"""One call's way through the engine: the model it names, its requests, their events, what they measured.

Begin with ``model_host.py``, then ``engine_bridge.py``. Bodies of requests are ``schemas.py`` and ``chat_body.py``.
"""
