"""What users have set, for the server and for single models.

Begin with ``server_settings.py``.
"""
