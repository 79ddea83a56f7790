"""GET and POST /lora-adapters: the LoRA adapters of the model, and how much each counts."""

from __future__ import annotations

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import ModelPool
from app.server.calls.schemas import LoraScale


async def list_adapters(http: HttpRequest) -> Response:
    """List the adapters with the scales of requests that say none."""
    host = _host(http)
    pairs = zip(host.adapters, host.lora_scales, strict=False)
    return JSONResponse([{"id": index, "path": path, "scale": scale} for index, (path, scale) in enumerate(pairs)])


async def scale_adapters(body: list[LoraScale], http: HttpRequest) -> Response:
    """Change the scales for requests to come; an adapter that is not listed gets 0."""
    host = _host(http)
    host.lora_scales = host.lora_of(body) or host.lora_scales
    return JSONResponse({"success": True})


def _host(http: HttpRequest) -> ModelHost:
    """Return the engine whose model has adapters, else that of the chosen model."""
    pool: ModelPool = http.app.state.pool
    return next((host for host in pool.hosts if host.adapters), pool.main)
