"""What a model writes, taken apart while it comes: content, reasoning, tool calls.

Begin with ``reply_format.py`` (what a reply looks like), then ``reply_parser.py``; ``pieces.py`` has what comes out.
"""
