"""Tools that a model may call: MCP servers, what is allowed of them, and their calls in a chat.

Begin with ``tool_box.py``.
"""
