"""The calls that a model made together: allowed, made, and over."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal

from ui.chat.tools.tool_box import ToolBox
from ui.client.attachments import Attachment
from ui.client.tool_calls import OPEN, CallStatus, ToolCall, closed

REFUSED = "The user did not allow this call."


class CallRound(QObject):
    """Makes each call that is allowed. ``changed`` comes whenever one is further, ``ended`` when all are over."""

    changed = Signal(object)  # tuple[ToolCall, ...]
    ended = Signal()

    def __init__(self, box: ToolBox, calls: tuple[ToolCall, ...], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._box = box
        self._calls = {call.id: call for call in calls}
        self._numbers: dict[str, int] = {}

    def start(self) -> None:
        """Make what needs no question, and let the others be asked for."""
        for call in list(self._calls.values()):
            tool = self._box.find(call.name)
            if tool is None:
                self._put(call, CallStatus.FAILED, f"There is no tool {call.name} now.")
                continue
            known = self._calls[call.id] = replace(call, server=tool.server, tool=tool.name)
            if self._box.is_allowed(tool) or _arguments(known) is None:  # nobody is asked for what cannot be called
                self._make(known)
        self._tell()

    def answer(self, call_id: str, allow: bool, always: bool) -> None:
        """Allow a call, this time or for good, or refuse it."""
        call = self._calls.get(call_id)
        if call is None or call.status is not CallStatus.ASKED:
            return
        tool = self._box.find(call.name)
        if allow and always and tool is not None:
            self._box.allow(tool)
        if allow:
            self._make(call)
        else:
            self._put(call, CallStatus.REFUSED, REFUSED)
        self._tell()

    def stop(self) -> None:
        """Give up what is not over."""
        for number in self._numbers.values():
            self._box.cancel(number)
        self._calls = {key: closed(call) if call.status in OPEN else call for key, call in self._calls.items()}
        self.changed.emit(tuple(self._calls.values()))

    def _make(self, call: ToolCall) -> None:
        tool, arguments = self._box.find(call.name), _arguments(call)
        if tool is None:
            self._put(call, CallStatus.FAILED, f"There is no tool {call.name} now.")
        elif arguments is None:
            self._put(call, CallStatus.FAILED, "The arguments are no JSON object.")
        else:
            self._put(call, CallStatus.RUNNING, "")
            self._numbers[call.id] = self._box.call(tool, arguments, partial(self._on_done, call.id))

    def _on_done(self, call_id: str, result: str, is_error: bool, images: tuple[Attachment, ...]) -> None:
        self._numbers.pop(call_id, None)
        self._calls[call_id] = replace(self._calls[call_id], images=images)
        self._put(self._calls[call_id], CallStatus.FAILED if is_error else CallStatus.DONE, result)
        self._tell()

    def _put(self, call: ToolCall, status: CallStatus, result: str) -> None:
        self._calls[call.id] = replace(self._calls[call.id], status=status, result=result)

    def _tell(self) -> None:
        self.changed.emit(tuple(self._calls.values()))
        if not any(call.status in OPEN for call in self._calls.values()):
            self.ended.emit()


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None
