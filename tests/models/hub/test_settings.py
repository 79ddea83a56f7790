"""Where the Hub's address, proxy and token come from, and that the token is kept nowhere but in the keyring."""

from __future__ import annotations

import json

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import NoKeyringError, PasswordDeleteError

from models.hub.errors import BadHubSetting
from models.hub.settings import (
    DEFAULT_ADDRESS,
    HubSettings,
    find_token,
    forget_token,
    keep_token,
    read_settings,
    save_settings,
    saved_settings,
)


class Kept(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self):
        self.kept = {}

    def get_password(self, service, username):
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self.kept[service, username] = password

    def delete_password(self, service, username):
        if (service, username) not in self.kept:
            raise PasswordDeleteError("none")
        del self.kept[service, username]


class Missing(Kept):
    """A system without a keyring."""

    def get_password(self, service, username):
        raise NoKeyringError

    def set_password(self, service, username, password):
        raise NoKeyringError

    def delete_password(self, service, username):
        raise NoKeyringError


@pytest.fixture
def ring():
    before = keyring.get_keyring()
    keyring.set_keyring(Kept())
    yield keyring.get_keyring()
    keyring.set_keyring(before)


def test_without_anything_the_defaults_hold(tmp_path, ring):
    assert read_settings(tmp_path / "hub.json") == HubSettings(DEFAULT_ADDRESS)
    (tmp_path / "file").touch()
    assert saved_settings(tmp_path / "file" / "config" / "hub.json") == {}


def test_the_environment_goes_before_what_was_saved(tmp_path, ring, monkeypatch):
    file = tmp_path / "new" / "hub.json"
    save_settings(file, address="https://mirror.example/", proxy="http://proxy.example:3128")
    saved = read_settings(file)
    assert (saved.address, saved.proxy) == ("https://mirror.example", "http://proxy.example:3128")
    assert file.stat().st_mode & 0o077 == 0, "a proxy's address may have a password in it"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:99")
    monkeypatch.setenv("HF_TOKEN", "hf_environment")
    settings = read_settings(file)
    assert settings.address == "http://127.0.0.1:99"
    assert settings.token is not None
    assert settings.headers["Authorization"] == "Bearer hf_environment"
    save_settings(file, address=None, proxy=None)
    assert json.loads(file.read_text()) == {}


@pytest.mark.parametrize(
    ("value", "is_offline"), [("1", True), ("true", True), ("YES", True), ("0", False), ("", False)]
)
def test_offline_is_honoured(value, is_offline, tmp_path, ring, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert read_settings(tmp_path / "hub.json").is_offline is is_offline


def test_the_token_lives_in_the_keyring_by_address(tmp_path, ring):
    keep_token("https://a.example", "hf_secret")
    assert find_token("https://b.example") is None
    found = find_token("https://a.example")
    assert found is not None
    assert (found.secret, found.origin) == ("hf_secret", "the system keyring")
    assert "hf_secret" not in repr(found)
    assert forget_token("https://a.example")
    assert not forget_token("https://a.example")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    keyring.set_keyring(Missing())
    assert find_token("https://a.example") is None
    with pytest.raises(BadHubSetting, match="HF_TOKEN instead"):
        keep_token("https://a.example", "hf_secret")
    assert not forget_token("https://a.example")


def test_the_token_of_other_tools_is_read(tmp_path, ring, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("HF_ENDPOINT", "https://a.example/")
    assert find_token("https://a.example") is None
    (tmp_path / "token").write_text("hf_theirs\n")
    found = find_token("https://a.example")
    assert found is not None
    assert (found.secret, found.origin) == ("hf_theirs", "Hugging Face's token file")
    assert find_token("https://huggingface.co") == found
    assert find_token("https://anybody.example") is None


def test_addresses_that_are_none_are_refused_and_a_password_is_not_shown():
    for address in ("huggingface.co", "ftp://x", "http://", "file:///etc", "http://[", "http://x:y"):
        with pytest.raises(BadHubSetting, match="no web address"):
            HubSettings(address)
    with pytest.raises(BadHubSetting) as caught:
        HubSettings(proxy="sock://me:secret@proxy.example")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"address": 5}', b'{"address": "x"}'])
def test_a_damaged_file_is_told(content, tmp_path, ring):
    file = tmp_path / "hub.json"
    file.write_bytes(content)
    with pytest.raises(BadHubSetting):
        read_settings(file)
    file.write_bytes(b"[]")
    assert read_settings(file).address == DEFAULT_ADDRESS
