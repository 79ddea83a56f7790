"""What the servers of this machine are at work on, over real HTTP."""

from __future__ import annotations

import socket

from app.client.discovery import announce, withdraw
from app.jobs.pair_test.pair_test import OtherWork, other_work
from tools.stand_ins.fake_openai import FakeServer


def listed(fake: FakeServer) -> None:
    assert announce(host="127.0.0.1", port=int(fake.url.rpartition(":")[2]), api_key=None, model=None) is None


def test_an_idle_server_or_none_is_no_other_work(home, fake):
    assert other_work() is None
    listed(fake)
    assert other_work() is None


def test_replies_and_loading_are(home, fake):
    listed(fake)
    fake.n_active = 1
    assert other_work() is OtherWork.REPLIES
    fake.n_active, fake.phase = 0, "loading"
    assert other_work() is OtherWork.LOADING
    withdraw()
    assert other_work() is None


def test_a_server_that_refuses_or_is_gone_is_passed_over(home, fake):
    fake.n_active, fake.api_key = 1, "another"
    listed(fake)
    assert other_work() is None
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        announce(host="127.0.0.1", port=nobody.getsockname()[1], api_key=None, model=None)
        assert other_work() is None
