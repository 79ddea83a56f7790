"""What the servers of this machine are doing: a measurement beside it would be wrong and would slow it down."""

from __future__ import annotations

from enum import StrEnum

from app.client.discovery import RunningServer, running_servers
from app.client.http_client import Client, ServerRefused, ServerUnreachable

_ANSWER_SECONDS = 1.0


class OtherWork(StrEnum):
    """Work of a server that takes the memory's bandwidth."""

    REPLIES = "replies"
    LOADING = "a load"


def other_work() -> OtherWork | None:
    """Return what a running server of this user is at work on; None where all of them are idle, or there is none."""
    found = {_work_of(server) for server in running_servers()}
    return next((work for work in OtherWork if work in found), None)


def _work_of(server: RunningServer) -> OtherWork | None:
    try:
        state = Client(server.url, server.api_key, _ANSWER_SECONDS).state()
    except (ServerUnreachable, ServerRefused):
        return None  # what does not answer does not write either, as far as can be known
    if state.fields.get("active") or state.fields.get("queued"):
        return OtherWork.REPLIES
    return OtherWork.LOADING if state.phase in ("loading", "restarting") else None
