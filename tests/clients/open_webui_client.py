"""Open WebUI, driven as its page does: connections, chats with a title and a tool, stop, a file; by both protocols."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import aiohttp
import socketio

BASE, BASE_URL, KEY, MODEL = (os.environ[name] for name in ("BASE", "BASE_URL", "API_KEY", "MODEL"))
TOOL = '''
class Tools:
    def get_weather(self, city: str) -> str:
        """Get the weather in a city.

        :param city: the city
        """
        return f"sunny in {city}"
'''
# What a user may set in the panel beside a chat, for all servers.
PANEL = {"max_tokens": 60, "temperature": 0, "num_ctx": 4096, "num_thread": 2, "use_mmap": True, "keep_alive": "5m"}
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
URL = f"http://127.0.0.1:{PORT}"


@contextmanager
def open_webui():
    """Run the program with both connections."""
    environment = os.environ | {
        "DATA_DIR": os.getcwd(),
        "WEBUI_SECRET_KEY": "for a test",
        "OFFLINE_MODE": "true",
        "OPENAI_API_BASE_URLS": BASE_URL,
        "OPENAI_API_KEYS": KEY,
        "OLLAMA_BASE_URLS": BASE,
        "RAG_EMBEDDING_ENGINE": "openai",
    }
    command = [sys.executable.replace("python", "open-webui"), "serve", "--host", "127.0.0.1", "--port", str(PORT)]
    with open("log.txt", "w+") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield
        except BaseException:
            log.seek(0)
            print(log.read()[-5_000:], file=sys.stderr)
            raise
        finally:
            process.kill()
            process.wait()


class Page:
    """What the page holds: a session, and what is told of chats."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        """Requests go to the program."""
        self.http, self.socket = http, socketio.AsyncClient()
        self.events: list[dict] = []

    async def ask(self, method: str, path: str, body: object = None, **more: object) -> dict:
        """Return the answer's JSON."""
        async with self.http.request(method, path, json=body, **more) as response:
            assert response.status == 200, f"{method} {path}: {response.status} {await response.text()}"
            return await response.json()

    async def sign_up(self) -> None:
        """Wait for the program, make its first user, and listen to what becomes of chats."""
        for _ in range(1_000):
            try:
                await self.ask("GET", "/health")
                break
            except (OSError, AssertionError):
                await asyncio.sleep(0.1)
        user = {"name": "Ann", "email": "ann@example.com", "password": "Long enough 1"}
        token = (await self.ask("POST", "/api/v1/auths/signup", user))["token"]
        self.http.headers["Authorization"] = f"Bearer {token}"
        self.socket.on("events", self.events.append)
        await self.socket.connect(URL, auth={"token": token}, socketio_path="/ws/socket.io", transports=["websocket"])
        await self.socket.emit("user-join", {"auth": {"token": token}})

    async def send(self, model: str, text: str, **fields: object) -> dict:
        """Begin a chat as the page does; return its chat, message and task."""
        message, reply = ({"id": str(uuid.uuid4())} for _ in range(2))
        message |= {"role": "user", "content": text, "parentId": None, "childrenIds": [], "models": [model]}
        begun = await self.ask(
            "POST",
            "/api/chat/completions",
            {
                "model": model,
                "messages": [{"role": "user", "content": text}],
                "stream": True,
                "params": PANEL | fields.pop("params", {}),
                "session_id": self.socket.sid,
                "id": reply["id"],
                "parent_id": None,
                "user_message": message,
                "background_tasks": {"title_generation": True, "tags_generation": True, "follow_up_generation": True},
            }
            | fields,
        )
        return {"chat": begun["chat_id"], "message": reply["id"], "task": begun["task_ids"][0]}

    async def told(self, of: dict, kind: str, seconds: float = 60) -> dict:
        """Return the first event of a kind about a chat."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for event in self.events:
                if event.get("chat_id") == of["chat"] and event["data"]["type"] == "chat:message:error":
                    raise AssertionError(event["data"])
                if event.get("chat_id") == of["chat"] and event["data"]["type"] == kind:
                    return event["data"].get("data") or {}
            await asyncio.sleep(0.05)
        raise AssertionError(f"no {kind} of {of}: {[event['data']['type'] for event in self.events]}")

    async def answered(self, of: dict) -> dict:
        """Return the message when it is complete."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            chat = await self.ask("GET", f"/api/v1/chats/{of['chat']}")
            message = chat["chat"]["history"]["messages"][of["message"]]
            assert "error" not in message, message
            if message.get("done"):
                return message
            await asyncio.sleep(0.1)
        raise AssertionError("no answer")


async def connect(page: Page) -> None:
    """Enter both connections, each after it was verified, and see the model in both lists."""
    await page.ask("POST", "/openai/verify", {"url": BASE_URL, "key": KEY})
    await page.ask("POST", "/ollama/verify", {"url": BASE, "key": KEY})
    keys = {"OLLAMA_BASE_URLS": [BASE], "OLLAMA_API_CONFIGS": {"0": {"enable": True, "key": KEY}}}
    await page.ask("POST", "/ollama/config/update", {"ENABLE_OLLAMA_API": True} | keys)
    listed = {model["id"]: model["owned_by"] for model in (await page.ask("GET", "/api/models"))["data"]}
    assert listed[MODEL] == "openai", listed
    assert listed[f"{MODEL}:latest"] == "ollama", listed
    for name in (MODEL, f"{MODEL}:latest"):  # the program's own tools are 6,700 tokens, too many for the toy model
        meta = {"capabilities": {"builtin_tools": False}}
        await page.ask("POST", "/api/v1/models/create", {"id": name, "name": name, "meta": meta, "params": {}})
    await page.ask("GET", "/api/models?refresh=true")


async def chat(page: Page, model: str) -> None:
    """Send a message; see the text come, the message as it is kept, and a title."""
    of = await page.send(model, "Tell me a story.")
    await page.told(of, "response:completion")
    message = await page.answered(of)
    assert message["content"].strip(), message
    await page.told(of, "chat:title")


async def use_tool(page: Page, model: str) -> None:
    """Let the model call a tool of the program, and answer with what it said."""
    of = await page.send(model, "What is the weather in Paris?", tool_ids=["weather"])
    message = await page.answered(of)
    call, result, _ = message["output"]
    assert "Paris" in call["arguments"], message
    assert result["output"][0]["text"] == "sunny in Paris", message


async def stop(page: Page, model: str) -> None:
    """End a reply on the way; the server must not go on with it."""
    endless = {"max_tokens": 20_000, "custom_params": {"ignore_eos": True}}
    of = await page.send(model, "Tell me a story.", params=endless)
    await page.told(of, "response:completion")
    await page.ask("POST", f"/api/tasks/stop/{of['task']}")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as http:
        for _ in range(50):
            async with http.get(f"{BASE}/slots") as slots:
                running = [slot for slot in await slots.json() if slot["is_processing"]]
            if not running:
                return
            await asyncio.sleep(0.1)
    raise AssertionError(f"{model} still writes: {running}")


async def search(page: Page, engine: str) -> None:
    """Give a file, whose vectors come from the server, and find a line in it."""
    form = {"RAG_EMBEDDING_ENGINE": engine, "RAG_EMBEDDING_MODEL": MODEL, "RAG_EMBEDDING_BATCH_SIZE": 8}
    address = {"url": BASE_URL if engine == "openai" else BASE, "key": KEY}
    await page.ask("POST", "/api/v1/retrieval/embedding/update", form | {f"{engine}_config": address})
    data = aiohttp.FormData()
    text = f"{engine}: The fox lives in the old mill.\n" * 60
    data.add_field("file", text, filename=f"{engine}.txt", content_type="text/plain")
    async with page.http.post("/api/v1/files/?process_in_background=false", data=data) as answer:
        assert answer.status == 200, await answer.text()
        file = await answer.json()
    found = await page.ask(
        "POST",
        "/api/v1/retrieval/query/collection",
        {"collection_names": [f"file-{file['id']}"], "query": "Where does the fox live?", "k": 2},
    )
    assert "old mill" in found["documents"][0][0], found


async def main() -> None:
    """Try all of it."""
    with open_webui():
        async with aiohttp.ClientSession(URL) as http:
            page = Page(http)
            await page.sign_up()
            await connect(page)
            tool = {"id": "weather", "name": "Weather", "content": TOOL, "meta": {"description": "The weather"}}
            await page.ask("POST", "/api/v1/tools/create", tool)
            for model, engine in ((MODEL, "openai"), (f"{MODEL}:latest", "ollama")):
                await chat(page, model)
                await use_tool(page, model)
                await stop(page, model)
                await search(page, engine)
            await page.socket.disconnect()


asyncio.run(main())
