"""Errors of the Hub, as one tree. The text of each says what happened and what to do.

HubError
├── BadHubSetting        an address, proxy or name that cannot be used
├── Offline              no network is to be used
├── Unreachable          nothing answers
│   └── TimedOut         it answers too slowly
├── RateLimited          too many requests
├── HubFault             the Hub has a problem of its own, or answers what cannot be understood
├── NotThere
│   ├── RepositoryNotFound
│   ├── RevisionNotFound
│   └── FileNotFound
└── NoAccess
    ├── BadToken
    ├── GatedWithoutToken
    └── GatedForToken
"""

from __future__ import annotations

from models.formatting.sentence import Sentence, SentenceError


class HubError(SentenceError):
    """Base of every error about the Hub: its text says what happened and what to do."""


class BadHubSetting(HubError):
    """An address, proxy or repository name that cannot be used."""


class Offline(HubError):
    """The user asked for no network."""

    def __init__(self) -> None:
        super().__init__(Sentence("HF_HUB_OFFLINE is set, so the Hub is not asked. Unset it to search and download."))


class Unreachable(HubError):
    """The Hub's address does not answer."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            "{address} cannot be reached ({reason}). Check the network connection and, if you use one, "
            "the proxy, then try again.",
            address=address,
            reason=reason,
        )


class TimedOut(Unreachable):
    """The Hub did not answer in time."""

    def __init__(self, address: str, seconds: float) -> None:
        super(Unreachable, self).__init__(
            "{address} did not answer within {seconds:g} seconds. The network or the Hub is slow: try again later.",
            address=address,
            seconds=seconds,
        )


class RateLimited(HubError):
    """The Hub takes no more requests for a while; ``seconds`` is None if it does not say how long."""

    def __init__(self, seconds: float | None) -> None:
        wait = (
            Sentence("a few minutes")
            if seconds is None
            else Sentence("{n_seconds} s", n_seconds=max(1, round(seconds)))
        )
        super().__init__(
            "The Hub takes no more requests from here for now. Try again in {wait}, or log in: it then allows more.",
            wait=wait,
        )
        self.seconds = seconds


class HubFault(HubError):
    """The Hub failed or answered something that cannot be understood; ``status`` is its HTTP status or None."""

    def __init__(self, what: str, status: int | None = None) -> None:
        super().__init__("The Hub has a problem ({what}). Try again in a while.", what=what)
        self.status = status


class NotThere(HubError):
    """The Hub does not have it."""


class RepositoryNotFound(NotThere):
    """The repository does not exist or is hidden from this user: the Hub does not tell which."""

    def __init__(self, repo_id: str, *, has_token: bool) -> None:
        how = Sentence("your token must be allowed to read it") if has_token else Sentence("log in first")
        super().__init__(
            "There is no repository {repo_id}, or it is private. Check the name; if it is private, {how}.",
            repo_id=repo_id,
            how=how,
        )
        self.has_token = has_token


class RevisionNotFound(NotThere):
    """The repository has no such version (any more)."""

    def __init__(self, repo_id: str, revision: str) -> None:
        super().__init__(
            "{repo_id} has no version {revision} (any more). Try again to get the current one.",
            repo_id=repo_id,
            revision=revision,
        )


class FileNotFound(NotThere):
    """The repository has no such file (any more)."""

    def __init__(self, repo_id: str, name: str) -> None:
        super().__init__("{repo_id} has no file {name} (any more).", repo_id=repo_id, name=name)
        self.repo_id = repo_id


class NoAccess(HubError):
    """The Hub has it, but this user may not read it."""


class BadToken(NoAccess):
    """The token is wrong or has expired."""

    def __init__(self) -> None:
        super().__init__(
            Sentence(
                "The Hub does not accept the access token: it is wrong or has expired. Make a new one in "
                "your account's settings on the Hub and log in with it, or correct HF_TOKEN."
            )
        )


class GatedWithoutToken(NoAccess):
    """The model's conditions must be accepted first, and nobody is logged in."""

    def __init__(self, repo_id: str, address: str) -> None:
        super().__init__(
            "{repo_id} is gated: its makers ask you to accept their conditions first. Do so at "
            "{address}/{repo_id}, then log in here.",
            repo_id=repo_id,
            address=address,
        )


class GatedForToken(NoAccess):
    """The token's owner has not been given access."""

    def __init__(self, repo_id: str, address: str) -> None:
        super().__init__(
            "{repo_id} is gated and your account has no access yet. Accept its conditions at "
            "{address}/{repo_id} (some makers answer after days), then try again.",
            repo_id=repo_id,
            address=address,
        )
