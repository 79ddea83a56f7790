"""Waits until no text is written any more: what a client leaves must end, long before it is whole."""

import json
import os
import time
import urllib.request

HEADERS = {"Authorization": f"Bearer {os.environ['API_KEY']}"}


def wait_until_free() -> None:
    """Raises AssertionError where a slot is still at work after some seconds."""
    asked = urllib.request.Request(f"{os.environ['BASE']}/slots", headers=HEADERS)
    end = time.monotonic() + 5
    while any(slot["is_processing"] for slot in json.load(urllib.request.urlopen(asked))):
        assert time.monotonic() < end, "a text that its client left goes on"
        time.sleep(0.05)
