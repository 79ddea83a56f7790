"""Headers of files on the Hub, read in ranges: the same facts as from the file itself, for little traffic."""

from __future__ import annotations

import pytest

from models.facts.model_facts import read_model
from models.gguf.errors import GgufError, UnreadableFile
from models.hub import remote_source
from models.hub.errors import GatedForToken, GatedWithoutToken, HubFault, Offline, RateLimited, TimedOut, Unreachable
from models.hub.remote_source import RemoteSource, remote_facts
from tools.model_factory.gguf_factory import EMBER, moe_ember
from tools.stand_ins.hub_server import STRANGER, TOKEN, Fault


@pytest.fixture
def ember(server):
    server.add("acme/ember-GGUF", {"ember.gguf": EMBER.read_bytes()})
    return "acme/ember-GGUF"


def facts(hub, repo_id):
    repository = hub.repository(repo_id)
    return remote_facts(hub, repository, repository.models[0])


def as_there(path):
    local = read_model(path)
    return [getattr(local, name) for name in local.__slots__ if name != "files"]


def test_facts_equal_those_of_the_file_for_a_part_of_its_bytes(ember, server, hub):
    remote = facts(hub, ember)
    assert [getattr(remote, name) for name in remote.__slots__ if name != "files"] == as_there(EMBER)
    assert (remote.architecture, remote.n_ctx_train, remote.kv_bytes_per_token()) == ("llama", 1024, 4608)
    assert remote.has_chat_template
    assert server.n_content_bytes <= 1 << 20 < EMBER.stat().st_size


def test_experts_are_seen_before_the_download(server, hub, tmp_path):
    path = moe_ember(tmp_path / "moe.gguf", n_experts=8, n_used=2)
    server.add("acme/moe-GGUF", {"moe.gguf": path.read_bytes()})
    remote = facts(hub, "acme/moe-GGUF")
    assert (remote.n_experts, remote.n_experts_used) == (8, 2)
    assert remote.active_bytes_per_token == read_model(path).active_bytes_per_token


def test_a_gated_model_says_so(ember, server, hub, hub_with):
    server.repos[ember].gated = "manual"
    with pytest.raises(GatedWithoutToken, match="accept their conditions"):
        facts(hub, ember)
    with pytest.raises(GatedForToken, match="your account has no access yet"):
        facts(hub_with(STRANGER), ember)
    assert facts(hub_with(TOKEN), ember).title == "Ember"
    assert {asked.authorization for asked in server.content_requests()} == {None}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=503), HubFault),
        (Fault(status=429, headers={"Retry-After": "9"}), RateLimited),
        (Fault(stall_after=1000), TimedOut),
        (Fault(status=404), Exception),
        (Fault(status=302, headers={"Location": "?"}), Unreachable),
    ],
)
def test_faults_have_their_sentence(fault, error, ember, server, hub_with):
    server.fault("ember.gguf", fault)
    with pytest.raises(error):
        facts(hub_with(timeout=0.3), ember)


def test_offline_reads_nothing(ember, hub, hub_with):
    repository = hub.repository(ember)
    with pytest.raises(Offline):
        remote_facts(hub_with(is_offline=True), repository, repository.models[0])


def test_a_file_that_is_no_model_says_so(server, hub):
    server.add("acme/bad-GGUF", {"bad.gguf": b"<html>" * 100})
    with pytest.raises(GgufError, match="web page"):
        facts(hub, "acme/bad-GGUF")


def test_ranges_are_needed_beyond_the_first_block(ember, server, hub, monkeypatch):
    monkeypatch.setattr(remote_source, "BLOCK_BYTES", 1 << 14)
    server.fault("ember.gguf", Fault(ignores_ranges=True))
    with pytest.raises(HubFault, match="does not send parts"):
        facts(hub, ember)


def test_a_header_without_end_is_given_up(ember, hub, monkeypatch):
    monkeypatch.setattr(remote_source, "MAX_BYTES", 1 << 15)
    monkeypatch.setattr(remote_source, "BLOCK_BYTES", 1 << 14)
    with pytest.raises(UnreadableFile, match="not read over the network"):
        facts(hub, ember)


def test_reading_at_the_end_is_short(ember, server, hub):
    repository = hub.repository(ember)
    file = repository.models[0].files[0]
    with RemoteSource(hub, ember, repository.commit, file) as source:
        assert source.read_at(file.n_bytes - 10, 100) == EMBER.read_bytes()[-10:]
        assert source.read_at(file.n_bytes, 100) == b""
        n = len(server.asked)
        assert source.read_at(file.n_bytes - 500, 500) == EMBER.read_bytes()[-500:]
        assert len(server.asked) == n
