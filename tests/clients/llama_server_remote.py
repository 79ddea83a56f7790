"""llama.cpp's own server as a remote of ours: what passes, what ends early, and what happens when it dies."""

import json
import os
import time
from urllib.parse import urlsplit

import httpx
import openai
import psutil

from benchmarks.peer_server import PeerOptions, PeerServer, find_peer
from tests.support.prompts import EMBER

# Built once, in the cache of this machine.
built = find_peer(None)
peer = PeerServer(PeerOptions(str(EMBER), n_slots=2, n_ctx=4096, n_threads=2, server=built.path if built else None))
PEER = peer.url
home = httpx.Client(
    base_url=os.environ["BASE"], headers={"Authorization": f"Bearer {os.environ['API_KEY']}"}, timeout=60
)
added = home.post("/slipstream/remotes", json={"name": "peer", "url": f"{PEER}/v1"}).json()
assert added["problem"] is None, added
MODEL = added["models"][0]
client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0)
TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
asked = [{"role": "user", "content": "What is the weather in Paris?"}]


def requests():
    return home.get("/slipstream/requests").json()["data"]


def wait_for(find):
    deadline = time.monotonic() + 20
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def is_working():
    return any(slot["is_processing"] for slot in httpx.get(f"{PEER}/slots").json())


assert MODEL in [model.id for model in client.models.list()]
fields = {"model": MODEL, "messages": asked, "temperature": 0, "max_tokens": 30}
whole = client.chat.completions.create(**fields)
assert whole.choices[0].message.content
pieces = client.chat.completions.create(stream=True, **fields)
assert "".join(one.choices[0].delta.content or "" for one in pieces if one.choices) == whole.choices[0].message.content
called = client.chat.completions.create(
    **fields, tools=[{"type": "function", "function": TOOL}], tool_choice="required"
)
assert called.choices[0].message.tool_calls[0].function.name == "get_weather"
assert home.post("/tokenize", json={"model": MODEL, "content": "a fox"}).json()["tokens"]
for path in ("/props", "/slots", "/lora-adapters"):
    assert type(home.get(path, params={"model": MODEL}).json()) is type(httpx.get(f"{PEER}{path}").json()), path
assert home.get("/props", params={"model": MODEL}).json()["total_slots"] == 2

# An error is the remote's own.
wrong = {**fields, "messages": "none"}
direct = httpx.post(f"{PEER}/v1/chat/completions", json={**wrong, "model": "any"})
through = home.post("/v1/chat/completions", json=wrong)
assert (through.status_code, through.json()) == (direct.status_code, direct.json()), (through.text, direct.text)

# An early end reaches it.
long = {**fields, "max_tokens": 3000, "stream": True, "ignore_eos": True}
with home.stream("POST", "/v1/chat/completions", json=long) as stream:
    lines = stream.iter_lines()  # the stream is closed with it
    next(lines)
    wait_for(is_working)
    assert requests()[0]["remote"] == "peer"
wait_for(lambda: not is_working() and not requests())

# It dies in the middle of a stream: one error, one end.
with home.stream("POST", "/v1/chat/completions", json=long) as stream:
    lines = stream.iter_lines()
    next(lines)
    port = urlsplit(PEER).port
    (pid,) = {
        one.pid for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN and one.laddr.port == port
    }
    psutil.Process(pid).kill()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
assert ["error" in event for event in events] == [False] * (len(events) - 1) + [True], events[-1]
assert "peer" in events[-1]["error"]["message"]

# It is gone: a sentence that names it, or a model of this machine.
gone = home.post("/v1/chat/completions", json=fields)
assert gone.status_code == 502, gone.text
home.post("/slipstream/remotes", json={"name": "peer", "url": f"{PEER}/v1", "fallback": os.environ["MODEL"]})
instead = home.post("/v1/chat/completions", json=fields)
assert (instead.status_code, instead.headers["x-slipstream-fallback"]) == (200, os.environ["MODEL"])
home.delete("/slipstream/remotes/peer")
peer.stop()
