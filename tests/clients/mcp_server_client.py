"""The window's own client of MCP servers with a server that others made."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

host = subprocess.Popen(
    [os.environ["PROJECT_PYTHON"], "-m", "ui.chat.tools.tool_host"],
    cwd=Path(__file__).resolve().parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)  # fmt: skip


def told(**wish: object) -> dict:
    host.stdin.write(json.dumps(wish) + "\n")
    host.stdin.flush()
    return json.loads(host.stdout.readline())


opened = told(open="time", at=shlex.join((sys.executable, "-m", "mcp_server_time")), extra={})
assert {tool["name"] for tool in opened["tools"]} == {"get_current_time", "convert_time"}, opened
wanted = {"source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00"}
called = told(call=1, server="time", tool="convert_time", arguments=wanted)
assert (called["is_error"], "21:00" in called["result"]) == (False, True), called
host.stdin.close()
host.wait(30)
