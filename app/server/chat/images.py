"""Images in messages: out of data URLs or from the web, checked, and put at their places in the prompt."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import ipaddress
import re
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.server.calls.chat_body import SentImage
from app.server.http.errors import refuse
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import MAX_IMAGES, PromptImage
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    import httpx

MAX_IMAGE_BYTES = 20 * 1024 * 1024
# For all of an image, and for each part of the exchange.
_FETCH_SECONDS = 20.0
_MAX_REDIRECTS = 3
# Images that were found to be whole are not decoded again with each turn of a conversation.
_MAX_CHECKED = 1_024
_checked: OrderedDict[bytes, None] = OrderedDict()


async def read_images(sent: Sequence[SentImage], model: LoadedModel, *, allows_remote: bool) -> list[bytes]:
    """Return the images' files; raises ApiError that names the part of the body with what is wrong."""
    if not model.mmproj:
        how = advice(
            f"Load one that can: its projector is a file mmproj….gguf beside it, or `{PROGRAM} serve --mmproj FILE`.",
            Sentence("Load one that can: its page in the library says so."),
        )
        message = Sentence("This model is loaded without a projector, so it cannot see images. {how}", how=how)
        raise refuse(400, message, sent[0].place, "images_not_supported")
    if len(sent) > MAX_IMAGES:
        message = Sentence(
            "{n_sent} images were sent, at most {most} are taken: leave out the oldest.",
            n_sent=len(sent),
            most=MAX_IMAGES,
        )
        raise refuse(400, message, sent[MAX_IMAGES].place, "too_many_images")
    files = []
    for image in sent:
        try:
            data = await _file_of(image.url, allows_remote=allows_remote)
            await asyncio.to_thread(_check, data)
        except BadRequest as error:
            raise refuse(400, error.message, image.place, "invalid_image") from error
        files.append(data)
    return files


def data_url(file: Path) -> str:
    """Return a file of this server's as the URL of an image. Raises BadRequest for one that is too large."""
    if file.stat().st_size > MAX_IMAGE_BYTES:
        raise BadRequest(_TOO_LARGE)
    return f"data:;base64,{base64.b64encode(file.read_bytes()).decode()}"


def image_marks(n_images: int) -> list[str]:
    """Return texts that no message holds, one for the place of each image."""
    nonce = secrets.token_hex(12)
    return [f"image{nonce}n{number}e" for number in range(n_images)]


def placed(prompt: str, marks: Sequence[str], files: Sequence[bytes]) -> tuple[str, tuple[PromptImage, ...]]:
    """Return a prompt without the marks, and the images at their places. Raises BadRequest where one is missing."""
    if not marks:
        return prompt, ()
    file_of = dict(zip(marks, files, strict=True))
    texts: list[str] = []
    images: list[PromptImage] = []
    offset = done = 0
    for found in re.finditer("|".join(marks), prompt):
        texts.append(prompt[done : found.start()])
        offset += len(texts[-1])
        images.append(PromptImage(offset, file_of[found[0]]))
        done = found.end()
    if {id(image.data) for image in images} != {id(file) for file in files}:
        raise BadRequest(
            Sentence("The chat template of this model leaves out images of these messages."), param="messages"
        )
    return "".join([*texts, prompt[done:]]), tuple(images)


def _check(data: bytes) -> None:
    """Decode an image that was not seen lately, so that a damaged one is refused before a stream begins."""
    from core.scheduler.images import decoded  # Pillow: only who sends images waits for it

    name = hashlib.sha256(data).digest()
    if name not in _checked:
        decoded(data)
        _checked[name] = None
        while len(_checked) > _MAX_CHECKED:
            _checked.popitem(last=False)


async def _file_of(url: str, *, allows_remote: bool) -> bytes:
    scheme = url[:8].partition(":")[0].lower()
    if scheme == "data":
        return _data_of(url)
    if _RAW.match(url):  # as llama-server's clients may send it
        return _data_of(f"data:;base64,{url}")
    if scheme not in ("http", "https"):
        raise BadRequest("An image is sent as a data URL: data:image/png;base64,… No file is read from this machine.")
    if not allows_remote:
        how = advice(f" Or start `{PROGRAM} serve --allow-remote-images`.", "")  # the window's server fetches none
        raise BadRequest("Images are not fetched from the web: send it as a data URL.{how}", how=how)
    return await fetch_image(url)


def _data_of(url: str) -> bytes:
    """Return what a data URL (RFC 2397) holds; other encodings than base64 would take seconds for a large one."""
    head, comma, body = url.partition(",")
    if not comma:
        raise BadRequest("The data URL has no comma before its data: send data:image/png;base64,…")
    if len(body) > 2 * MAX_IMAGE_BYTES:
        raise BadRequest(_TOO_LARGE)
    if not head.lower().endswith(";base64"):
        raise BadRequest("An image is sent as base64: data:image/png;base64,…")
    text = "".join(body.split()).translate(_URL_SAFE)
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest("The image is not valid base64: send all of it, and nothing else.") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise BadRequest(_TOO_LARGE)
    return data


# More characters of base64 than stand in the path of a file without a dot.
_RAW = re.compile(r"[\w+/-]{64}")
_URL_SAFE = str.maketrans("-_", "+/")
_TOO_LARGE = Sentence("An image may have {most} MB: send a smaller one.", most=MAX_IMAGE_BYTES >> 20)


def is_public(address: str) -> bool:
    """Whether an IP address is on the internet and not of this machine or its network."""
    return ipaddress.ip_address(address).is_global


async def fetch_image(url: str, may_ask: Callable[[str], bool] = is_public) -> bytes:
    """Return the file at an address of the web. Raises BadRequest.

    ``may_ask`` says which IP addresses may be asked. A name is looked up once, and the address that was checked is the
    one that is asked: a name that changes its address in between (DNS rebinding) gains nothing.
    """
    import httpx  # a tenth of a server's start, and most servers fetch nothing

    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            for _ in range(_MAX_REDIRECTS + 1):
                found = await _ask(httpx.URL(url), may_ask)
                if isinstance(found, bytes):
                    return found
                url = found
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        reason = "it took too long" if isinstance(error, (TimeoutError, httpx.TimeoutException)) else str(error)
        raise BadRequest(f"The image could not be fetched: {reason}. Send it as a data URL.") from error
    raise BadRequest("The image could not be fetched: its address is redirected too often. Send it as a data URL.")


async def _ask(url: httpx.URL, may_ask: Callable[[str], bool]) -> bytes | str:
    """Return the file at an address, or where it is redirected to."""
    import httpx

    port = url.port or (443 if url.scheme == "https" else 80)
    if url.scheme not in ("http", "https") or not url.host:
        raise BadRequest("The image could not be fetched: its address leads to no web server.")
    loop = asyncio.get_running_loop()
    known = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in known]
    if not addresses or not all(map(may_ask, addresses)):
        raise BadRequest("Images are fetched from public addresses only, not from this machine or its network.")
    asked = url.copy_with(host=addresses[0], port=port)
    name = url.netloc.decode("ascii")
    async with (
        httpx.AsyncClient(trust_env=False, timeout=_FETCH_SECONDS) as client,
        client.stream("GET", asked, headers={"Host": name}, extensions={"sni_hostname": url.host}) as answer,
    ):
        if answer.has_redirect_location:
            return str(url.join(answer.headers["location"]))
        if answer.status_code != httpx.codes.OK:
            raise BadRequest(f"The image could not be fetched: {url.host} answered {answer.status_code}.")
        data = bytearray()
        async for chunk in answer.aiter_bytes():
            data += chunk
            if len(data) > MAX_IMAGE_BYTES:
                raise BadRequest(_TOO_LARGE)
        return bytes(data)
