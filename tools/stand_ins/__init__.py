"""Stand-ins for what is outside: servers, the Hub, a measured machine.

Begin with ``hub_server.py``.
"""
