"""Images: what this server makes of them against llama-server, with the same made model and projector."""

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path

import httpx

from app.client.server_process import ServerProcess
from benchmarks.peer_server import PeerOptions, PeerServer, find_peer
from tests.support.images import picture
from tests.support.prompts import EMBER
from tools.model_factory.projector_factory import projector

N_CTX = 1024
# One image, another, two of different sizes, and the first one again: kept states must not change what is said.
SHOWN = ((3,), (4,), (5, 6), (3,))
# Log probabilities of the first token, likely ones: kernels round differently, which moves them by up to 0.08 here.
# Another picture moves them by more than 0.4.
ROUNDING = 0.15


def judged(url: str, key: str, seeds: tuple[int, ...]) -> tuple[int, dict[str, float]]:
    """The prompt's tokens, and the log probabilities of what a reply to a question with these pictures begins with."""
    files = [base64.b64encode(picture(seed=seed, width=32 * seed, height=96)).decode() for seed in seeds]
    images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{file}"}} for file in files]
    content = [{"type": "text", "text": "Look: "}, *images, {"type": "text", "text": " What is it?"}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1, "temperature": 0}
    asked = body | {"logprobs": True, "top_logprobs": 3}
    answer = httpx.post(
        f"{url}/v1/chat/completions", json=asked, headers={"Authorization": f"Bearer {key}"}, timeout=120
    )
    answer.raise_for_status()
    reply = answer.json()
    (first,) = reply["choices"][0]["logprobs"]["content"]
    return reply["usage"]["prompt_tokens"], {one["token"]: one["logprob"] for one in first["top_logprobs"]}


def distance(one: dict[str, float], other: dict[str, float]) -> float:
    """The largest difference; endless where the likely tokens are not the same."""
    return max(abs(one[token] - other[token]) for token in one) if one.keys() == other.keys() else float("inf")


def main() -> int:
    """Return 0 where both see the same in all pictures, and something else in another."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "ember-sees-q8_0.gguf"
        mmproj = Path(folder) / "mmproj-F16.gguf"
        shutil.copy(EMBER, model)
        shutil.copy(projector("gemma3"), mmproj)
        # Built once, in the cache of this machine; our server's own files lie in the folder.
        found = find_peer(None)
        os.environ["SLIPSTREAM_HOME"] = folder
        more = ("--mmproj", str(mmproj), "--jinja", "--no-webui")
        peer = PeerServer(PeerOptions(str(model), 1, N_CTX, 2, server=found and found.path, more=more))
        ours = ServerProcess(["--model", str(model), "--no-draft", "--ctx", str(N_CTX)])
        try:
            url = ours.wait_listening()
            with peer:
                pairs = [(judged(url, ours.api_key, seeds), judged(peer.url, "none", seeds)) for seeds in SHOWN]
        finally:
            ours.stop()
    found = [(mine[0] == theirs[0], distance(mine[1], theirs[1])) for mine, theirs in pairs]
    for seeds, (is_same, far) in zip(SHOWN, found, strict=True):
        print(f"pictures {seeds}: {'as many' if is_same else 'other'} tokens, apart by {far:.3f}", file=sys.stderr)
    control = distance(pairs[0][0][1], pairs[1][0][1])
    print(f"one picture against another: {control:.3f}", file=sys.stderr)
    return int(any(not is_same or far > ROUNDING for is_same, far in found) or control <= ROUNDING)


if __name__ == "__main__":
    sys.exit(main())
