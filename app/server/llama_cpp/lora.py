"""GET and POST /lora-adapters: the LoRA adapters of the model, and how much each counts."""

from __future__ import annotations

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_host import ModelHost
from app.server.calls.schemas import LoraScale


async def list_adapters(http: HttpRequest) -> Response:
    """List the adapters with the scales of requests that say none."""
    host: ModelHost = http.app.state.host
    pairs = zip(host.adapters, host.lora_scales, strict=False)
    return JSONResponse([{"id": index, "path": path, "scale": scale} for index, (path, scale) in enumerate(pairs)])


async def scale_adapters(body: list[LoraScale], http: HttpRequest) -> Response:
    """Change the scales for requests to come; an adapter that is not listed gets 0."""
    host: ModelHost = http.app.state.host
    host.lora_scales = host.lora_of(body) or host.lora_scales
    return JSONResponse({"success": True})
