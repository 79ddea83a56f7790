"""The HTTP application: its routes, its middleware and its errors, each an explicit list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import copy
from functools import cache
from typing import Any, cast

from fastapi import APIRouter, Depends, FastAPI
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute

from app import __version__
from app.environment.paths import data_folder
from app.server import live, meters, owner_routes, status
from app.server.anthropic import messages
from app.server.batches import routes as batches
from app.server.batches.batch_runner import BatchRunner
from app.server.batches.file_store import FileStore
from app.server.calls.model_pool import ModelPool
from app.server.http.described import EVENT_STREAM, FILE, JSON, LINES, TEXT, answers, form, query
from app.server.http.docs_page import docs_page
from app.server.http.errors import ApiError, from_exception, from_http_exception, from_validation
from app.server.http.keys import ApiKeys
from app.server.http.limits import (
    AllowedOrigins,
    BearerAuth,
    BodyLimit,
    HostCheck,
    JsonOnly,
    OriginCheck,
    PlainPath,
    RequestIds,
    check_manages,
)
from app.server.http.sse import ClientGone
from app.server.library.routes import describe, handler_of, library_events
from app.server.library.worker import LibraryWorker
from app.server.llama_cpp import completion, infill, metrics, properties, router, tokens
from app.server.llama_cpp import embeddings as llama_vectors
from app.server.lm_studio import calls as lm_studio_calls
from app.server.lm_studio import chat as lm_studio
from app.server.lm_studio import models as lm_studio_models
from app.server.ollama import chat as ollama
from app.server.ollama import embed
from app.server.ollama import models as ollama_models
from app.server.openai import audio, chat, completions, embeddings, responses
from app.server.openai.response_store import ResponseStore
from app.server.remotes import routes as remote_routes
from app.server.remotes.exchange import Remotes
from app.server.remotes.pass_through import PassThrough
from app.server.remotes.store import RemoteStore
from app.server.templates.chat_template import TemplateRenderer
from app.settings.server_settings import ServerSettings
from core.values.errors import SlipstreamError
from models.library.requests import EVENTS
from models.library.requests import ROUTES as LIBRARY_ROUTES

ROUTES = (
    ("GET", "/health", status.health),
    ("GET", "/v1/health", status.health),
    ("GET", "/v1/models", status.list_models),
    ("GET", "/v1/models/{model_id:path}", status.get_model),
    ("POST", "/v1/chat/completions", chat.chat_completions),
    ("POST", "/v1/completions", completions.completions),
    ("POST", "/v1/chat/completions/control", chat.control),
    ("POST", "/v1/chat/completions/input_tokens", chat.count_input_tokens),
    ("POST", "/v1/responses", responses.create_response),
    ("POST", "/v1/responses/input_tokens", responses.count_input_tokens),
    ("POST", "/v1/responses/compact", responses.compact),
    ("GET", "/v1/responses", responses.list_responses),
    ("GET", "/v1/responses/{response_id}", responses.get_response),
    ("DELETE", "/v1/responses/{response_id}", responses.delete_response),
    ("POST", "/v1/responses/{response_id}/cancel", responses.cancel_response),
    ("GET", "/v1/responses/{response_id}/input_items", responses.list_input_items),
    ("POST", "/v1/embeddings", embeddings.embeddings),
    ("POST", "/v1/rerank", llama_vectors.rerank),
    ("POST", "/v1/files", batches.upload_file),
    ("GET", "/v1/files", batches.list_files),
    ("GET", "/v1/files/{file_id}", batches.get_file),
    ("DELETE", "/v1/files/{file_id}", batches.delete_file),
    ("GET", "/v1/files/{file_id}/content", batches.get_file_content),
    ("POST", "/v1/batches", batches.create_batch),
    ("GET", "/v1/batches", batches.list_batches),
    ("GET", "/v1/batches/{batch_id}", batches.get_batch),
    ("POST", "/v1/batches/{batch_id}/cancel", batches.cancel_batch),
    ("POST", "/v1/messages", messages.create_message),
    ("POST", "/v1/messages/count_tokens", messages.count_tokens),
    ("POST", "/completion", completion.completion),
    ("POST", "/infill", infill.infill),
    ("POST", "/embedding", llama_vectors.embedding),
    ("POST", "/embeddings", llama_vectors.embedding),
    ("POST", "/rerank", llama_vectors.rerank),
    ("POST", "/reranking", llama_vectors.rerank),
    ("POST", "/v1/reranking", llama_vectors.rerank),
    ("POST", "/v2/rerank", llama_vectors.rerank),
    ("POST", "/tokenize", tokens.tokenize),
    ("POST", "/detokenize", tokens.detokenize),
    ("POST", "/apply-template", tokens.apply_template),
    ("GET", "/lora-adapters", properties.list_adapters),
    ("POST", "/lora-adapters", properties.scale_adapters),
    ("GET", "/models", status.list_models),
    ("POST", "/models", router.download_model),
    ("DELETE", "/models", router.remove_model),
    ("GET", "/models/sse", router.model_events),
    ("POST", "/models/load", router.load_model),
    ("POST", "/models/unload", router.unload_model),
    ("GET", "/tokenizer_info", properties.tokenizer_info),
    ("GET", "/props", properties.properties),
    ("POST", "/props", properties.change_properties),
    ("GET", "/slots", properties.slots),
    ("POST", "/slots/{id_slot}", properties.act_on_slot),
    ("GET", "/metrics", metrics.metrics),
    ("POST", "/v1/audio/{kind}", audio.audio),
    ("GET", "/v1/audio/{kind}", audio.audio),
    ("GET", "/", ollama_models.root),
    ("GET", "/api/version", ollama_models.version),
    ("GET", "/api/tags", ollama_models.tags),
    ("GET", "/api/ps", ollama_models.processes),
    ("POST", "/api/show", ollama_models.show),
    ("POST", "/api/chat", ollama.chat),
    ("POST", "/api/generate", ollama.generate),
    ("POST", "/api/embed", embed.embed),
    ("POST", "/api/embeddings", embed.embeddings),
    ("POST", "/api/pull", ollama_models.pull),
    ("DELETE", "/api/delete", ollama_models.delete),
    ("POST", "/api/copy", ollama_models.unsupported),
    ("POST", "/api/create", ollama_models.unsupported),
    ("POST", "/api/push", ollama_models.unsupported),
    ("POST", "/api/blobs/{digest}", ollama_models.unsupported_blob),
    ("GET", "/api/blobs/{digest}", ollama_models.no_blob),
    ("GET", "/lmstudio-greeting", lm_studio_models.greet),
    ("GET", "/api/v0/models", lm_studio_models.list_models),
    ("GET", "/api/v0/models/{model_id:path}", lm_studio_models.get_model),
    ("POST", "/api/v0/chat/completions", lm_studio_calls.chat_completions),
    ("POST", "/api/v0/completions", lm_studio_calls.completions),
    ("POST", "/api/v0/embeddings", lm_studio_calls.embeddings),
    ("GET", "/api/v1/models", lm_studio_models.list_models_v1),
    ("POST", "/api/v1/models/load", lm_studio_models.load_model),
    ("POST", "/api/v1/models/unload", lm_studio_models.unload_model),
    ("POST", "/api/v1/models/download", lm_studio_models.download_model),
    ("GET", "/api/v1/models/download/status/{job_id}", lm_studio_models.download_status),
    ("POST", "/api/v1/chat", lm_studio.chat),
    ("GET", "/slipstream/state", status.state),
    ("GET", "/slipstream/events", live.events),
    ("GET", "/slipstream/requests", live.list_requests),
    ("DELETE", "/slipstream/requests/{request_id}", live.cancel_request),
    ("POST", "/slipstream/load", status.load),
    ("DELETE", "/slipstream/load", status.cancel_load),
    ("POST", "/slipstream/unload", status.unload),
    ("POST", "/slipstream/batches/{batch_id}/pause", batches.pause_batch),
    ("POST", "/slipstream/batches/{batch_id}/resume", batches.resume_batch),
    ("DELETE", "/slipstream/batches/{batch_id}", batches.remove_batch),
    ("GET", "/slipstream/machine", meters.get_machine),
    ("GET", "/slipstream/endpoint", owner_routes.get_endpoint),
    ("POST", "/slipstream/endpoint", owner_routes.set_endpoint),
    ("GET", "/slipstream/keys", owner_routes.list_keys),
    ("POST", "/slipstream/keys", owner_routes.add_key),
    ("POST", "/slipstream/keys/{name}", owner_routes.change_key),
    ("DELETE", "/slipstream/keys/{name}", owner_routes.revoke_key),
    ("GET", "/slipstream/log", owner_routes.get_log),
    ("GET", "/slipstream/remotes", remote_routes.list_remotes),
    ("POST", "/slipstream/remotes", remote_routes.add_remote),
    ("POST", "/slipstream/remotes/{name}/test", remote_routes.test_remote),
    ("DELETE", "/slipstream/remotes/{name}", remote_routes.remove_remote),
    ("GET", "/slipstream/workers", remote_routes.list_workers),
    ("POST", "/slipstream/workers", remote_routes.add_worker),
    ("DELETE", "/slipstream/workers/{place}", remote_routes.remove_worker),
)
# Not for keys that only use models, as the whole library. For them too, a request loads the model that it names.
_MANAGING = frozenset[Any](
    [
        *(properties.scale_adapters, properties.act_on_slot),  # of the requests and texts of all keys
        *(router.load_model, router.unload_model, router.download_model, router.remove_model),
        *(ollama_models.pull, ollama_models.delete),
        *(lm_studio_models.load_model, lm_studio_models.unload_model, lm_studio_models.download_model),
        *(status.load, status.cancel_load, status.unload),
        owner_routes.get_log,
        *(remote_routes.add_remote, remote_routes.test_remote, remote_routes.remove_remote),
        *(remote_routes.list_workers, remote_routes.add_worker, remote_routes.remove_worker),
    ]
)
_LIBRARY = "Library"
# Paths that are also found without the prefix, unless something else is there.
_PATHS = {path for _, path, _ in ROUTES}
_SHORT = {path.removeprefix("/v1").partition("/{")[0] for path in _PATHS if path.startswith("/v1/")}
# For the description: the media types of routes that answer not just with one JSON object, and statuses other than 200.
_KINDS: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys(
        (chat.chat_completions, completions.completions, responses.create_response, messages.create_message),
        (JSON, EVENT_STREAM),
    ),
    **dict.fromkeys((completion.completion, infill.infill, lm_studio.chat), (JSON, EVENT_STREAM)),
    **dict.fromkeys((lm_studio_calls.chat_completions, lm_studio_calls.completions), (JSON, EVENT_STREAM)),
    **dict.fromkeys((ollama.chat, ollama.generate, ollama_models.pull), (JSON, LINES)),
    **dict.fromkeys((live.events, router.model_events), (EVENT_STREAM,)),
    **dict.fromkeys((metrics.metrics, ollama_models.root), (TEXT,)),
    batches.get_file_content: (FILE,),
    ollama_models.delete: (),
}
_STATUSES: dict[Any, int] = {
    **dict.fromkeys((status.load, status.unload), 202),
    **dict.fromkeys((owner_routes.add_key, remote_routes.add_remote, remote_routes.add_worker), 201),
    **dict.fromkeys((audio.audio, responses.compact), 501),
    **dict.fromkeys((ollama_models.unsupported, ollama_models.unsupported_blob), 501),
    ollama_models.no_blob: 404,
}
_QUERIES: dict[Any, tuple[str, ...]] = {
    responses.list_responses: ("limit", "after", "order"),
    responses.list_input_items: ("limit", "after", "order"),
    batches.list_files: ("limit", "after", "order", "purpose"),
    batches.list_batches: ("limit", "after"),
    router.remove_model: ("model",),
    properties.properties: ("model",),
    properties.slots: ("model", "fail_on_no_slot"),
    properties.act_on_slot: ("action", "model"),
    owner_routes.get_log: ("lines",),
}
_UNHEALTHY: dict[int | str, Any] = {503: {"description": "It does not answer now, and why", "content": {JSON: {}}}}
_UPLOAD = form(file={"type": "string", "format": "binary"}, purpose={"enum": list(batches.PURPOSES)})
# By the room that answers.
_PROTOCOLS = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "batches": "OpenAI",
    "llama_cpp": "llama.cpp",
    "ollama": "Ollama",
    "lm_studio": "LM Studio",
}


class _Application(FastAPI):
    """Describes the library's routes once it is asked for: each start would have to wait for the models of bodies."""

    def openapi(self) -> dict[str, Any]:
        """Return our OpenAPI."""
        if self.openapi_schema is None:
            describe(super().openapi())
        return super().openapi()


def create_application(settings: ServerSettings, pool: ModelPool, keys: ApiKeys | None = None) -> FastAPI:
    """Return the application; it attaches to the engine when it starts up."""
    keys = keys or ApiKeys(settings)
    remotes, origins = Remotes(RemoteStore()), AllowedOrigins(settings.cors)
    application = _Application(
        title="Slipstream",
        version=__version__,
        lifespan=_lifespan,
        middleware=_middleware(settings, keys, remotes, origins),
        exception_handlers={
            ApiError: _on_error,
            SlipstreamError: _on_error,
            OSError: _on_error,  # as of a full disk: after other exceptions uvicorn closes the connection
            HTTPException: _on_http_exception,
            RequestValidationError: _on_invalid,
            ClientGone: _on_client_gone,
            ClientDisconnect: _on_client_gone,  # before all of its body was here
            Exception: _on_unforeseen,
        },
        # FastAPI's pages load scripts from elsewhere: ours is docs_page.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    application.state.pool = pool
    application.state.remotes = remotes
    application.state.renderer = TemplateRenderer(settings.template_variables)
    application.state.library = LibraryWorker()
    application.state.begun_pulls = {}  # those of LM Studio's clients, by the ids of their jobs
    application.state.responses = ResponseStore(data_folder() / "responses.sqlite")
    files = application.state.files = FileStore(data_folder() / "files")
    application.state.batches = BatchRunner(
        data_folder() / "batches",
        files,
        application,
        lambda: pool.main.model.n_slots if pool.main.model is not None else pool.main.settings.engine.n_slots,
    )
    application.state.keys, application.state.origins = keys, origins
    application.state.meters = meters.Meters()
    application.router.routes += all_routes()
    return application


@cache
def all_routes() -> tuple[BaseRoute, ...]:
    """Return what answers each path, the same for every application."""
    router = APIRouter()
    router.add_api_route("/docs", docs_page, methods=["GET"], include_in_schema=False)
    for method, path, handler in ROUTES:
        tag = _PROTOCOLS.get(handler.__module__.split(".")[2], "Slipstream")
        _add(router, method, path, handler, tag, _KINDS.get(handler, (JSON,)))
        if method == "GET":  # as health checks ask
            head = copy(cast(APIRoute, router.routes[-1]))  # to make one takes much longer
            head.methods, head.include_in_schema = {"HEAD"}, False
            router.routes.append(head)
    _add(router, "GET", EVENTS, library_events, _LIBRARY, (EVENT_STREAM,))
    for route in LIBRARY_ROUTES:
        _add(router, route.method, route.path, handler_of(route), _LIBRARY, (JSON, EVENT_STREAM))
    return tuple(router.routes)


def _checks(handler: Callable[..., Any], tag: str) -> list[Any]:
    """Return what is asked before a route answers; the body may be anything then."""
    return [Depends(check_manages)] if handler in _MANAGING or tag == _LIBRARY else []


def _add(
    router: APIRouter, method: str, path: str, handler: Callable[..., Any], tag: str, kinds: tuple[str, ...]
) -> None:
    """Add a route that answers with one of these media types, as it is described."""
    extra = _UPLOAD if handler is batches.upload_file else {"parameters": query(_QUERIES.get(handler, ()))}
    router.add_api_route(
        path,
        handler,
        methods=[method],
        dependencies=_checks(handler, tag),
        status_code=_STATUSES.get(handler, 200),
        response_class=JSONResponse if JSON in kinds else Response,
        response_model=None,
        responses=answers(path, kinds, _STATUSES.get(handler, 200)) | (_UNHEALTHY if handler is status.health else {}),
        openapi_extra=extra,
        tags=[tag],
    )


def _middleware(settings: ServerSettings, keys: ApiKeys, remotes: Remotes, origins: AllowedOrigins) -> list[Middleware]:
    """Return what a request passes through, outermost first."""
    return [
        Middleware(PlainPath, routes=_SHORT, others=_PATHS),
        Middleware(RequestIds),
        Middleware(HostCheck, settings=settings, keys=keys),
        Middleware(OriginCheck, origins=origins, keys=keys),
        Middleware(BearerAuth, keys=keys),
        Middleware(JsonOnly),
        Middleware(BodyLimit),
        Middleware(PassThrough, remotes=remotes),
    ]


@asynccontextmanager
async def _lifespan(application: FastAPI) -> AsyncIterator[None]:
    pool: ModelPool = application.state.pool
    renderer: TemplateRenderer = application.state.renderer
    library: LibraryWorker = application.state.library
    pool.attach()
    runner: BatchRunner = application.state.batches
    runner.start()
    starting = asyncio.ensure_future(renderer.start())
    try:
        yield
    finally:
        await runner.close()
        await library.end()
        await application.state.remotes.upstream.close()
        application.state.responses.close()
        await asyncio.gather(starting, return_exceptions=True)
        await renderer.close()


async def _on_error(http: HttpRequest, error: Exception) -> Response:
    return _response(http, from_exception(error))


async def _on_unforeseen(http: HttpRequest, error: Exception) -> Response:
    return _response(http, from_exception(error), {"connection": "close"})  # as uvicorn does then


async def _on_http_exception(http: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _response(http, from_http_exception(error, http.method, http.url.path, _PATHS), error.headers)


async def _on_invalid(http: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _response(http, from_validation(error.errors()))


async def _on_client_gone(_http: HttpRequest, _error: Exception) -> Response:
    return Response(status_code=499)


def _response(http: HttpRequest, error: ApiError, headers: object = None) -> Response:
    more = dict(headers) if isinstance(headers, dict) else {}
    return Response(error.encoded(http.scope["path"]), error.answer.status, error.headers() | more, "application/json")
