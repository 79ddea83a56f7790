"""Server-sent events from bytes that arrive in any pieces. No Qt here."""

from __future__ import annotations


class SseParser:
    """Turns bytes into the ``data`` of events. Lines and UTF-8 characters may be cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of the events that ``chunk`` completes."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        events = [self._take_line(line.removesuffix(b"\r")) for line in lines]
        return [event for event in events if event is not None]

    def _take_line(self, line: bytes) -> str | None:
        if not line:
            return self._finish_event()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        return None

    def _finish_event(self) -> str | None:
        if not self._data:
            return None
        data = b"\n".join(self._data).decode("utf-8", "replace")
        self._data.clear()
        return data
