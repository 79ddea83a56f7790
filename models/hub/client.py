"""Asks the Hub through huggingface_hub: search, repositories, and the owner of a token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast
from urllib.parse import quote

from models.formatting.safe_text import in_utf8
from models.formatting.sentence import Sentence
from models.hub.errors import (
    BadHubSetting,
    BadToken,
    FileNotFound,
    GatedForToken,
    GatedWithoutToken,
    HubError,
    HubFault,
    Offline,
    RepositoryNotFound,
    RevisionNotFound,
    Unreachable,
)
from models.hub.repository import Access, FoundRepository, HubFile, Repository, group
from models.hub.session import open_session, reason
from models.hub.settings import HubSettings

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ExpandModelProperty_T, ModelInfo, RepoSibling

Sort = Literal["downloads", "likes", "created_at", "last_modified", "trending_score"]
SORTS: Final[dict[str, Sort]] = {
    "downloads": "downloads",
    "likes": "likes",
    "newest": "created_at",
    "updated": "last_modified",
    "trending": "trending_score",
}
_EXPAND = ["downloads", "likes", "lastModified", "gated", "private", "gguf", "tags", "siblings"]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Search:
    """A search on the Hub."""

    words: str = ""
    author: str | None = None
    sort: Sort = "downloads"
    limit: int = 20


class Hub:
    """The Hub at one address. Every method may block for the settings' timeout and raises HubError."""

    def __init__(self, settings: HubSettings) -> None:
        self.settings = settings

    def search(self, search: Search) -> tuple[FoundRepository, ...]:
        """Repositories with GGUF files, in the order of ``search.sort``."""

        def ask(api: HfApi) -> Iterable[ModelInfo]:
            return list(
                api.list_models(
                    filter="gguf",
                    search=in_utf8(search.words) or None,
                    author=search.author,
                    sort=search.sort,
                    limit=search.limit,
                    expand=cast("list[ExpandModelProperty_T]", _EXPAND),
                )
            )

        return tuple(_found(info) for info in self._ask(ask))

    def repository(self, repo_id: str, revision: str | None = None) -> Repository:
        """One repository with its files and their sizes; a renamed one is followed."""
        info = self._ask(lambda api: api.model_info(repo_id, revision=revision, files_metadata=True), repo_id, revision)
        if not info.sha:
            raise HubFault(Sentence("{repo_id} has no commit", repo_id=repo_id))
        files = [file for sibling in info.siblings or () if (file := _file(sibling)) is not None]
        return Repository(**_facts(info), asked_as=repo_id, commit=info.sha, models=group(files))

    def user_of(self, secret: str) -> str:
        """The name of a token's owner; raises BadToken."""
        answer = self._ask(lambda api: api.whoami(token=_sendable(secret)))
        return str(answer.get("name", "?"))

    def file_url(self, repo_id: str, commit: str, path: str) -> str:
        """The URL of a file's content at one commit."""
        return f"{self.settings.address}/{repo_id}/resolve/{quote(commit, safe='')}/{quote(path)}"

    def _ask(self, ask: Callable[[HfApi], _Answer], repo_id: str = "", revision: str | None = None) -> _Answer:
        if self.settings.is_offline:
            raise Offline
        open_session(self.settings)
        with as_hub_errors(self.settings, repo_id, revision):
            return ask(self._api())

    def _api(self) -> HfApi:
        from huggingface_hub import HfApi

        token = self.settings.token
        return HfApi(endpoint=self.settings.address, token=_sendable(token.secret) if token else False)


def _sendable(secret: str) -> str:
    """Return a token that a header can hold; raises BadToken."""
    if not (secret.isascii() and secret.isprintable()):
        raise BadToken
    return secret


@contextmanager
def as_hub_errors(settings: HubSettings, repo_id: str, revision: str | None) -> Iterator[None]:
    """Turn the exceptions of huggingface_hub into HubErrors."""
    from huggingface_hub import errors as theirs

    try:
        yield
    except HubError:
        raise
    except theirs.HFValidationError as error:
        raise BadHubSetting(
            "{repo_id} is no name of a repository. It looks like maker/model-GGUF.", repo_id=repr(repo_id)
        ) from error
    except theirs.OfflineModeIsEnabled as error:
        raise Offline from error
    except theirs.HfHubHTTPError as error:
        status = error.response.status_code
        code = error.response.headers.get("X-Error-Code")
        raise refusal(settings, status, code, repo_id, revision) from error
    except OSError as error:
        raise Unreachable(settings.address, reason(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # The library raises these if an answer is not as expected.
        raise HubFault(Sentence("its answer cannot be understood: {kind}", kind=type(error).__name__)) from error


def refusal(
    settings: HubSettings, status: int, code: str | None, repo_id: str, revision: str | None = None, path: str = ""
) -> HubError:
    """The error for an answer with an error status."""
    has_token = settings.token is not None
    if code == "GatedRepo":
        kind = GatedForToken if has_token else GatedWithoutToken
        return kind(repo_id, settings.address)
    if code == "RevisionNotFound":
        return RevisionNotFound(repo_id, revision or "main")
    if code == "EntryNotFound":
        return FileNotFound(repo_id, path)
    if code == "RepoNotFound" or (status == 404 and repo_id):
        return RepositoryNotFound(repo_id, has_token=has_token)
    if status == 401:
        return BadToken() if has_token or not repo_id else RepositoryNotFound(repo_id, has_token=False)
    if status == 403:
        return GatedForToken(repo_id, settings.address) if repo_id else BadToken()
    return HubFault(f"HTTP status {status}", status)


def _found(info: ModelInfo) -> FoundRepository:
    names = [HubFile(sibling.rfilename, 0, "") for sibling in info.siblings or ()]
    models = [item for item in group(names) if item.role == "model"]
    quantisations = tuple(dict.fromkeys(item.quantisation for item in models if item.quantisation))
    return FoundRepository(**_facts(info), n_models=len(models), quantisations=quantisations)


def _facts(info: ModelInfo) -> dict[str, Any]:
    """The fields of ``RepositoryFacts``."""
    gguf = info.gguf or {}
    return {
        "repo_id": info.id,
        "downloads": info.downloads or 0,
        "likes": info.likes or 0,
        "modified": info.last_modified,
        "access": _access(info),
        "architecture": gguf.get("architecture"),
        "n_params": _whole(gguf.get("total")),
        "n_ctx_train": _whole(gguf.get("context_length")),
        "licence": next((tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")), None),
        "base_models": _base_models(info),
    }


def _file(sibling: RepoSibling) -> HubFile | None:
    """None for a file of unknown size or content, which cannot be checked."""
    if sibling.size is None:
        return None
    if sibling.lfs is not None:
        return HubFile(sibling.rfilename, int(sibling.lfs.size), f"sha256:{sibling.lfs.sha256}")
    return HubFile(sibling.rfilename, sibling.size, f"git:{sibling.blob_id}") if sibling.blob_id else None


def _access(info: ModelInfo) -> Access:
    if info.gated:
        return Access.GATED
    return Access.PRIVATE if info.private else Access.OPEN


def _base_models(info: ModelInfo) -> tuple[str, ...]:
    """The repositories in tags like base_model:org/name and base_model:quantized:org/name, each once."""
    tags = (tag.removeprefix("base_model:") for tag in info.tags or () if tag.startswith("base_model:"))
    return tuple(dict.fromkeys(tag.rsplit(":", 1)[-1] for tag in tags))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
