"""llama-benchy: prompts, texts of an exact length and two at once are measured."""

import functools
import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# It counts by a tokenizer of this machine. Any will do: it asks for each prompt again until the server counts as much.
plain = Tokenizer(models.WordLevel({"word": 0}, unk_token="word"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
counting = PreTrainedTokenizerFast(tokenizer_object=plain)
counting.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
counting.save_pretrained("tokenizer")
Path("book.txt").write_text("word " * 5_000)
books = functools.partial(http.server.SimpleHTTPRequestHandler, directory=".")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), books)
threading.Thread(target=server.serve_forever, daemon=True).start()
command = ["llama-benchy", "--base-url", os.environ["BASE_URL"], "--api-key", os.environ["API_KEY"]]
command += ["--model", os.environ["MODEL"], "--tokenizer", "tokenizer", "--skip-coherence", "--no-cache", "--exact-tg"]
command += ["--book-url", f"http://127.0.0.1:{server.server_port}/book.txt", "--pp", "64", "--tg", "16"]
command += ["--concurrency", "1", "2", "--runs", "1", "--format", "json", "--save-result", "found.json"]
subprocess.run(command, check=True, timeout=300)
measured = json.loads(Path("found.json").read_text())["benchmarks"]
assert len(measured) == 2
assert all(one["tg_throughput"]["mean"] > 0 for one in measured), measured
