"""POST /models/load and /models/unload: models come and go, in the shapes of llama-server's router."""

from __future__ import annotations

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_pool import ModelPool
from app.server.http.body import Body


class RouterModelBody(Body):
    """The body of both."""

    model: str


async def load_model(body: RouterModelBody, http: HttpRequest) -> Response:
    """Begin to load a model; GET /models says when it is there."""
    pool: ModelPool = http.app.state.pool
    await pool.request_load(body.model)
    return JSONResponse({"success": True})


async def unload_model(body: RouterModelBody, http: HttpRequest) -> Response:
    """Unload a model as soon as no call has it."""
    pool: ModelPool = http.app.state.pool
    await pool.request_unload(body.model)
    return JSONResponse({"success": True})
