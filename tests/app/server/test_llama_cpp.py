"""llama-server's own routes over a real socket: completion, properties, slots, metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.server.conftest import MODEL, RunningServer
from tests.support.waiting import until

STORY = {"prompt": "Once upon a time", "n_predict": 24, "temperature": 0}


def complete(server, **fields):
    return server.http.post("/completion", json={**STORY, **fields})


def events(server, **fields):
    with server.http.stream("POST", "/completion", json={**STORY, "stream": True, **fields}) as answer:
        return [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: ")]


@pytest.fixture(scope="module")
def story(server) -> dict:
    return complete(server).json()


def test_a_completion_has_the_text_of_openais_and_llama_servers_fields(server, story):
    same = server.client.completions.create(model=MODEL, prompt=STORY["prompt"], max_tokens=24, temperature=0)
    assert story["content"] == same.choices[0].text
    assert (story["stop_type"], story["tokens_predicted"], story["stop"]) == ("limit", 24, True)
    assert story["tokens_evaluated"] == same.usage.prompt_tokens
    assert story["tokens_cached"] == story["tokens_evaluated"] + 23
    assert story["generation_settings"]["n_predict"] == 24
    assert story["generation_settings"]["temperature"] == 0
    assert (story["prompt"], story["model"], story["tokens"]) == (STORY["prompt"], MODEL, [])
    *chunks, last = events(server)
    assert "".join(chunk["content"] for chunk in [*chunks, last]) == story["content"]
    assert [chunk["stop"] for chunk in chunks] == [False] * len(chunks)
    assert (last["stop"], last["tokens_predicted"]) == (True, 24)
    assert complete(server, stop=[""]).json()["content"] == story["content"], "an empty stop string says nothing"


def test_a_text_in_logit_bias_stands_for_its_tokens(server, story):
    word = next(word for word in story["content"].split() if word.isalpha())
    biased = complete(server, logit_bias=[[f" {word}", False]]).json()
    assert f" {word}" in story["content"]
    assert f" {word}" not in biased["content"]
    ids = tokenize(server, content=f" {word}")
    assert sorted(biased["generation_settings"]["logit_bias"]) == sorted([one, -100.0] for one in ids)
    assert complete(server, logit_bias={f" {word}": -100}).json()["content"] == biased["content"]


def test_several_texts_are_a_list_and_a_prompt_mixes_tokens_and_texts(server):
    answers = complete(server, prompt=["One", "Two"], n_cmpl=2, n_predict=3).json()
    assert [answer["index"] for answer in answers] == [0, 1, 2, 3]
    assert [answer["prompt"] for answer in answers] == ["One", "One", "Two", "Two"]
    wanted = ["content", "generation_settings/n_predict", "none"]
    assert set(complete(server, response_fields=wanted).json()) == {"content", "generation_settings/n_predict"}
    ids = tokenize(server, content="Once upon")
    mixed = complete(server, prompt=[*ids, " a time", *ids], n_predict=4).json()
    whole = complete(server, prompt=[*ids, *tokenize(server, content=" a time"), *ids], n_predict=4).json()
    assert (mixed["content"], mixed["prompt"]) == (whole["content"], whole["prompt"])
    several = complete(server, prompt=[[*ids, " a"], "Two"], n_predict=1).json()
    assert [one["index"] for one in several] == [0, 1]


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/completions", "/completion"])
def test_a_stream_tells_how_much_of_its_prompt_was_read(server, route):
    text = f"{route} {'one two three four ' * 120}"
    prompt = {"messages": [{"role": "user", "content": text}]} if "chat" in route else {"prompt": text}
    body = {"max_tokens": 2, "stream": True, "temperature": 0, **prompt}

    def chunks(**fields) -> list[dict]:
        with server.http.stream("POST", route, json=body | fields) as answer:
            return [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]

    told = [chunk["prompt_progress"] for chunk in chunks(return_progress=True) if "prompt_progress" in chunk]
    counts = [one["processed"] for one in told]
    # A client that comes late hears of two steps at once.
    assert counts
    assert counts == sorted(counts)
    assert counts[-1] == told[-1]["total"] > 480
    assert told[-1]["time_ms"] > 0
    assert not any("prompt_progress" in chunk for chunk in chunks())


def test_token_ids_and_probabilities_come_where_they_are_wanted(server, story):
    answer = complete(server, n_probs=3, return_tokens=True).json()
    listed = answer["completion_probabilities"]
    assert [one["id"] for one in listed] == answer["tokens"]
    assert {len(one["top_logprobs"]) for one in listed} == {3}
    again = complete(server, prompt=answer["tokens"], n_predict=1).json()
    assert again["tokens_evaluated"] in (24, 25)
    assert again["prompt"] == answer["tokens"]


@pytest.mark.parametrize(
    ("fields", "kind", "word"),
    [
        ({"stop": [" a"], "n_predict": 60}, "word", " a"),
        ({"n_predict": 4}, "limit", ""),
        ({"n_predict": 0}, "limit", ""),
        ({"prompt": "Once", "n_predict": 400}, "eos", ""),
    ],
)
def test_it_says_why_the_text_ended(server, fields, kind, word):
    answer = complete(server, **fields).json()
    assert (answer["stop_type"], answer["stopping_word"]) == (kind, word)
    is_last_open = kind != "eos" and answer["tokens_predicted"] > 0
    assert answer["tokens_cached"] == answer["tokens_evaluated"] + answer["tokens_predicted"] - is_last_open


def test_samplers_that_are_left_out_are_off(server):
    answer = complete(server, samplers=["top_k", "temperature"], temperature=0.8, top_p=0.5, seed=1).json()
    settings = answer["generation_settings"]
    assert (settings["top_p"], settings["min_p"], settings["top_k"]) == (1.0, 0.0, 40)
    by_letters = complete(server, samplers="kt", temperature=0.8, top_p=0.5, seed=1).json()
    assert (by_letters["content"], by_letters["generation_settings"]) == (answer["content"], settings)


def test_a_text_ends_at_a_line_with_less_indentation_or_when_its_time_is_over(server):
    form = {"grammar": 'root ::= "    a = 1\\n    b = 2\\nc = 3\\n"', "n_predict": 60}
    assert complete(server, n_indent=4, **form).json()["content"] == "    a = 1\n    b = 2\n"
    *chunks, last = events(server, n_indent=4, **form)
    assert "".join(chunk["content"] for chunk in [*chunks, last]) == "    a = 1\n    b = 2\n"
    assert last["stop_type"] == "limit"
    form = {"grammar": 'root ::= ("a\\n")*', "n_predict": 900, "ignore_eos": True}
    answer = complete(server, t_max_predict_ms=1, **form).json()
    assert answer["stop_type"] == "limit"
    assert 0 < len(answer["content"]) < 900
    assert server.state["active"] == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        *((("/detokenize", {"tokens": [token]}), "tokens") for token in (99_999_999, -1)),
        *((("/tokenize", {"content": content}), "content") for content in ([-1], 3)),
        (("/apply-template", {}), "messages"),
        ({"prompt": 3}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": {"prompt_string": "a", "multimodal_data": ["x"]}}, "prompt"),
        ({"n_predict": -2}, "n_predict"),
        ({"n_probs": 500}, "n_probs"),
        ({"samplers": ["temperature", "top_k"]}, "samplers"),
        ({"samplers": ["magic"]}, "samplers"),
        ({"post_sampling_probs": True}, "post_sampling_probs"),
        ({"adaptive_target": 0.5}, "adaptive_target"),
        ({"grammar_triggers": []}, "grammar_triggers"),
        ({"dynatemp_range": 0.5}, "dynatemp_range"),
        ({"logit_bias": [["a", 101]]}, "logit_bias"),
        ({"logit_bias": [["a" * 201, 1]]}, "logit_bias"),
        ({"logit_bias": [[f"word {n}", 1] for n in range(257)]}, "logit_bias"),
        ({"grammar": "root ::= ("}, "grammar"),
    ],
)
def test_what_would_change_the_text_and_is_not_done_is_refused_by_name(server, fields, param):
    route, body = fields if isinstance(fields, tuple) else ("/completion", STORY | fields)
    answer = server.http.post(route, json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["param"], error["code"], error["type"]) == (param, 400, "invalid_request_error")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("POST", "/completion", {"prompt": "fox " * 2_000}, 400, "exceed_context_size_error"),
        ("POST", "/tokenize", {}, 400, "invalid_request_error"),
        ("POST", "/reranking", {}, 400, "invalid_request_error"),
        ("GET", "/infill", None, 405, "invalid_request_error"),
        ("POST", "/models/load", {"model": "none"}, 404, "not_found_error"),
        ("POST", "/models", {"model": MODEL}, 400, "invalid_request_error"),
        ("DELETE", "/models?model=none", None, 404, "not_found_error"),
        ("POST", "/props", {}, 501, "not_supported_error"),
    ],
)
def test_errors_have_the_form_of_llama_server(server, method, path, body, status, kind):
    answer = server.http.request(method, path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (status, status, kind)
    assert error["message"]
    assert (error.get("n_ctx") == 1024) is (kind == "exceed_context_size_error")
    wrong = server.http.request(method, path, json=body, headers={"Authorization": "Bearer wrong"})
    assert (wrong.json()["error"]["code"], wrong.json()["error"]["type"]) == (401, "authentication_error")
    at_openai = server.http.post("/v1/completions", json={"prompt": "fox " * 2_000}).json()["error"]
    assert (at_openai["code"], at_openai["type"]) == ("context_length_exceeded", "invalid_request_error")


TEXT = "Grüße, <|im_start|>you!"


def tokenize(server, **fields) -> list:
    answer = server.http.post("/tokenize", json={"content": TEXT, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["tokens"]


def test_a_text_becomes_tokens_and_text_again(server):
    tokens = tokenize(server)
    assert server.http.post("/detokenize", json={"tokens": tokens}).json() == {"content": TEXT, "prompt": TEXT}
    assert server.http.post("/detokenize", json={"tokens": []}).json()["content"] == ""
    assert tokenize(server, content=["Grüße, ", tokens[-1]])[-1] == tokens[-1]
    assert len(tokenize(server, parse_special=False)) > len(tokens)
    assert len(tokenize(server, add_special=True)) in (len(tokens), len(tokens) + 1)
    # vLLM's bodies, by which evaluation harnesses count tokens.
    asked = {"prompt": TEXT, "add_special_tokens": False}
    assert server.http.post("/tokenize", json=asked).json() == {"tokens": tokens, "count": len(tokens)}
    chat = {"messages": [{"role": "user", "content": "Hello"}]}
    counted = server.http.post("/chat/completions/input_tokens", json=chat).json()["input_tokens"]
    assert server.http.post("/tokenize", json=chat).json()["count"] == counted
    assert server.http.post("/tokenize", json=chat | {"add_generation_prompt": False}).json()["count"] < counted
    wrong = server.http.post("/tokenize", json={"messages": [{"role": "user"}]})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "messages[0]")
    info = server.http.get("/tokenizer_info").json()
    (end,) = tokenize(server, content=info["eos_token"])
    assert server.http.post("/tokenize", json={"prompt": info["eos_token"]}).json()["tokens"][-1] == end
    assert "messages" in info["chat_template"]
    # Pieces are text, or the bytes of a part of a character.
    pieces = tokenize(server, with_pieces=True, content="Grüße 🦊!")
    assert [piece["id"] for piece in pieces] == tokenize(server, content="Grüße 🦊!")
    whole = b"".join(one["piece"].encode() if isinstance(one["piece"], str) else bytes(one["piece"]) for one in pieces)
    assert whole.decode() == "Grüße 🦊!"
    assert any(isinstance(one["piece"], list) for one in pieces)
    prompt = server.http.post("/apply-template", json={"messages": [{"role": "user", "content": "Hello"}]}).json()[
        "prompt"
    ]
    assert prompt.startswith("<|im_start|>user\nHello<|im_end|>")
    assert prompt.endswith("<|im_start|>assistant\n")


def fill(server, **fields):
    return server.http.post("/infill", json={"n_predict": 8, "temperature": 0, **fields})


def test_the_middle_is_filled_in_as_by_hand(server):
    prompt = "<|fim_prefix|>def add(a, b):\n    return<|fim_suffix|>\n\nprint(add(1, 2))<|fim_middle|>"
    by_hand = complete(server, prompt=prompt, n_predict=8).json()
    parts = {"input_prefix": "def add(a, b):\n    return", "input_suffix": "\n\nprint(add(1, 2))"}
    told = fill(server, **parts).json()
    assert told["content"] == by_hand["content"]
    assert told["tokens_evaluated"] == by_hand["tokens_evaluated"]
    begun = fill(
        server, input_prefix="def add(a, b):\n    ", input_suffix=parts["input_suffix"], prompt="return"
    ).json()
    assert begun["tokens_evaluated"] in range(told["tokens_evaluated"] - 2, told["tokens_evaluated"] + 3)
    extra = [{"filename": "other.py", "text": "def sub(a, b): return a - b\n"}]
    with_files = fill(server, input_extra=extra, **parts).json()
    assert with_files["tokens_evaluated"] > told["tokens_evaluated"] + 8


def test_what_llama_vim_sends_is_answered(server):
    files = [{"filename": f"{i}.py", "text": "pass\n" * 100, "time": 1} for i in range(20)]
    asked = {
        "input_prefix": "x = <|fim_middle|> # a text of the file\n" * 200, "input_suffix": "y\n" * 2_000,
        "input_extra": files, "prompt": "    ", "n_indent": 4, "n_predict": 32, "top_k": 40, "top_p": 0.9,
        "samplers": ["top_k", "top_p", "infill"], "cache_prompt": True, "t_max_prompt_ms": 500,
        "t_max_predict_ms": 1_000, "stream": False,
        "response_fields": ["content", "timings/prompt_n", "timings/predicted_ms", "tokens_cached", "truncated"],
    }  # fmt: skip
    told = server.http.post("/infill", json=asked)
    assert told.status_code == 200, told.text
    assert set(told.json()) == set(asked["response_fields"])
    warm = server.http.post("/infill", json=asked | {"n_predict": 0, "response_fields": [""]})
    assert (warm.status_code, warm.json()) == (200, {})


def test_what_silly_tavern_sends_is_answered(server):
    asked = {
        "prompt": STORY["prompt"], "n_predict": 4, "max_tokens": 4, "max_new_tokens": 4, "temperature": 0,
        "typical_p": 1, "typical": 1, "repetition_penalty": 1.1, "repeat_penalty": 1.1, "skew": 0, "min_tokens": 0,
        "smoothing_factor": 0, "stopping_strings": ["\nYou:"], "stop": ["\nYou:"], "truncation_length": 2_048, "tfs": 1,
        "top_a": 0.1, "mirostat_mode": 0, "custom_token_bans": "", "api_server": "http://localhost", "nsigma": 0,
        "min_keep": 0, "adaptive_target": -0.01, "adaptive_decay": 0.9, "rep_pen": 1.1, "guidance_scale": 1,
        "negative_prompt": "", "n_probs": 2, "grammar": "", "logit_bias": {"5": False}, "seed": -1,
        "samplers": [
            "penalties", "dry", "top_n_sigma", "top_k", "tfs_z", "typical_p", "top_p", "min_p", "xtc", "temperature",
            "adaptive_p",
        ],
    }  # fmt: skip
    told = server.http.post("/completion", json=asked)
    assert told.status_code == 200, told.text
    assert told.json()["tokens_predicted"] == len(told.json()["completion_probabilities"]) == 4
    other = {"logprobs": 2, "max_completion_tokens": 4, "temperature": 0}
    assert len(complete(server, n_predict=None, **other).json()["completion_probabilities"]) == 4


def test_properties_are_those_of_the_model(server):
    found = server.http.get("/props").json()
    assert found["total_slots"] == 4
    assert found["model_alias"] == MODEL
    assert found["default_generation_settings"]["n_ctx"] == 1024
    assert found["default_generation_settings"]["params"]["temperature"] == 0.8
    assert "im_start" in found["chat_template"]
    (listed,) = (one for one in server.http.get("/v1/models").json()["data"] if one["id"] == MODEL)
    assert (listed["meta"]["n_ctx"], listed["status"]) == (1024, {"value": "loaded"})
    assert found["chat_template_caps"] == {"supports_tools": True, "supports_tool_calls": True}
    assert server.http.post("/props", json={}).status_code == 501


def test_slots_show_what_runs_in_them(own_server):
    idle = own_server.http.get("/slots").json()
    assert [slot["is_processing"] for slot in idle] == [False] * 4
    fields = {"ignore_eos": True, "n_predict": 900, "stream": True, "prompt": ["One", "Two", "Three", "Four"]}
    with own_server.http.stream("POST", "/completion", json=fields) as answer:
        lines = answer.iter_lines()
        next(lines)
        own_server.wait_until(lambda state: state["active"] == 4)
        busy = own_server.http.get("/slots").json()
        assert own_server.http.get("/slots", params={"fail_on_no_slot": "1"}).status_code == 503
    assert [slot["is_processing"] for slot in busy] == [True] * 4
    assert all(0 <= slot["next_token"][0]["n_decoded"] <= 900 for slot in busy)
    own_server.wait_until(lambda state: state["active"] == 0)


@pytest.fixture(scope="module")
def keeper(home, tmp_path_factory) -> Iterator[RunningServer]:
    """A server whose slots can be saved; the folder is beside it, at ``folder``."""
    folder = tmp_path_factory.mktemp("slots")
    options = ("--parallel", "2", "--no-draft", "--cache-ram", "0", "--cache-disk", "0", "--props")
    with RunningServer(*options, "--slot-save-path", str(folder), "--chat-template", "chatml") as running:
        running.folder = folder
        yield running


def slot(server, number: int | str, action: str, **body) -> dict:
    answer = server.http.post(f"/slots/{number}", params={"action": action}, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def n_cached(server, prompt: str, **fields) -> int:
    asked = {"model": MODEL, "max_tokens": 2, "temperature": 0, "extra_body": fields}
    return server.client.completions.create(prompt=prompt, **asked).usage.prompt_tokens_details.cached_tokens


def test_a_slot_is_saved_erased_and_restored_as_at_llama_server(keeper):
    prompt = "A long tale of foxes and bees. " * 12
    told = complete(keeper, prompt=prompt, id_slot=1).json()
    assert told["id_slot"] == 1
    saved = slot(keeper, 1, "save", filename="tale.bin")
    file = keeper.folder / "tale.bin"
    assert list(saved) == ["id_slot", "filename", "n_saved", "n_written", "timings"]
    assert (saved["id_slot"], saved["filename"], saved["n_written"]) == (1, "tale.bin", file.stat().st_size)
    assert saved["n_saved"] == told["tokens_cached"]
    assert saved["timings"]["save_ms"] > 0
    assert keeper.http.post("/slots/1?action=erase").json() == {"id_slot": 1, "n_erased": saved["n_saved"]}
    assert n_cached(keeper, prompt) == 0
    for number in (0, 1):
        slot(keeper, number, "erase")
    restored = slot(keeper, 0, "restore", filename="tale.bin")
    assert list(restored) == ["id_slot", "filename", "n_restored", "n_read", "timings"]
    assert (restored["n_restored"], restored["n_read"]) == (saved["n_saved"], saved["n_written"])
    assert n_cached(keeper, prompt, id_slot=0) == told["tokens_evaluated"] - 1
    chat = keeper.chat(prompt, max_tokens=1, extra_body={"slot_id": 1})
    assert chat.usage.prompt_tokens_details.cached_tokens < 20, "this is another text"
    slot(keeper, 1, "save", filename="chat.bin")


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("9?action=save", {"filename": "a.bin"}, 400, "the slots are 0 to 1"),
        ("one?action=save", {"filename": "a.bin"}, 400, "id_slot must be a valid integer"),
        ("0?action=copy", {"filename": "a.bin"}, 400, "action must be save, restore or erase"),
        ("0", {}, 400, "action must be"),
        ("0?action=save", {}, 400, "Missing required field: filename"),
        *(
            (f"0?action={action}", {"filename": name}, 400, "plain name")
            for action in ("save", "restore")
            for name in ("../a.bin", "a/b", "", ".", "/etc/passwd", "C:\\a", "a\u0000b", "x" * 300, ".hidden")
        ),
        ("0?action=save", {"filename": 3}, 400, "filename"),
        ("0?action=restore", {"filename": "none.bin"}, 400, "no file none.bin"),
        ("0?action=restore", {"filename": "foreign.bin"}, 400, "another program has written it"),
    ],
)
def test_what_cannot_be_done_with_a_slot_is_an_error_that_says_so(keeper, path, body, status, says):
    (keeper.folder / "foreign.bin").write_bytes(b"ggsq of another server")
    answer = keeper.http.post(f"/slots/{path}", json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert says in error["message"]
    assert error["code"] == status
    assert error["param"] in ("id_slot", "action", "filename")
    assert {one.name for one in keeper.folder.iterdir()} <= {"foreign.bin", "tale.bin", "chat.bin"}


def test_a_slot_at_work_is_left_alone(keeper):
    fields = {"prompt": "One", "ignore_eos": True, "n_predict": 900, "stream": True, "id_slot": 1}
    with keeper.http.stream("POST", "/completion", json=fields) as answer:
        lines = answer.iter_lines()
        assert json.loads(next(lines).removeprefix("data: "))["id_slot"] == 1
        assert [one["is_processing"] for one in keeper.http.get("/slots").json()] == [False, True]
        busy = keeper.http.post("/slots/1?action=erase")
        assert (busy.status_code, busy.json()["error"]["param"]) == (400, "id_slot")
        assert "at work" in busy.json()["error"]["message"]
    # The server leaves a request before the engine has ended it.
    erased = until(lambda: (answer := keeper.http.post("/slots/1?action=erase")).status_code == 200 and answer)
    assert erased.json()["n_erased"] > 0


def test_slots_and_properties_are_changed_only_where_the_server_was_started_for_it(server, keeper):
    for path, option in (("/slots/0?action=save", "--slot-save-path"), ("/props", "--props")):
        refused = server.http.post(path, json={"filename": "a.bin"})
        assert (refused.status_code, refused.json()["error"]["type"]) == (501, "not_supported_error")
        assert option in refused.json()["error"]["message"]
    for body in ({}, None):
        assert keeper.http.post("/props", json=body).json() == {"success": True}
    named = keeper.http.post("/props", json={"chat_template": "x"})
    assert (named.status_code, named.json()["error"]["param"]) == (400, "chat_template")
    assert "im_start" in keeper.http.get("/props").json()["chat_template"]


def _metrics(server) -> dict[str, float]:
    answer = server.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = list(text_string_to_metric_families(answer.text))
    assert len({family.name for family in families}) == len(families)
    return {
        sample.name + "".join(sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_add_up(own_server):
    before = _metrics(own_server)
    answer = complete(
        own_server, prompt="Metrics of a prompt that nobody sent before.", n_predict=8, ignore_eos=True
    ).json()
    after = _metrics(own_server)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown("llamacpp:tokens_predicted_total") == 8
    n_evaluated = answer["tokens_evaluated"] - answer["timings"]["cache_n"]
    assert grown("llamacpp:prompt_tokens_total") == n_evaluated
    assert grown("llamacpp:prompt_tokens_cached_total") == answer["timings"]["cache_n"]
    assert after["llamacpp:n_tokens_max"] >= answer["tokens_evaluated"] + 8
    assert grown("slipstream:requests_ended_totallength") == 1
    assert grown("slipstream:time_to_first_token_seconds_count") == 1
    assert grown("slipstream:time_to_first_token_seconds_bucket+Inf") == 1
    assert after["llamacpp:requests_processing"] == 0
    assert after["slipstream:kv_cells"] > 0


def test_metrics_count_steps_drafts_and_texts_that_became_vectors(paired):
    before = _metrics(paired)
    n_tokens = paired.http.post("/v1/embeddings", json={"input": "A fox and a bee."}).json()["usage"]["prompt_tokens"]
    assert _metrics(paired)["llamacpp:prompt_tokens_total"] - before["llamacpp:prompt_tokens_total"] == n_tokens

    n_tokens, n_drafted, n_accepted = 0, 0, 0
    for number in range(20):
        prompt = f"{number}. The fox ran. The fox ran. The fox ran. The"
        answer = complete(paired, prompt=prompt, n_predict=64, ignore_eos=True, temperature=0).json()
        n_tokens += 64
        n_drafted += answer["timings"].get("draft_n", 0)
        n_accepted += answer["timings"].get("draft_n_accepted", 0)
        if n_drafted:
            break
    # A step gives the token of a text and those of its draft that are right. The last gauges come behind the reply.
    until(lambda: _metrics(paired)["llamacpp:n_decode_total"] >= n_tokens - n_accepted)
    after = _metrics(paired)
    n_drafts = after["llamacpp:spec_decode_num_drafts_total"] - before["llamacpp:spec_decode_num_drafts_total"]
    assert 1 <= n_drafts <= min(n_drafted, after["llamacpp:n_decode_total"])
    assert 1 <= after["llamacpp:n_busy_slots_per_decode"] <= 2


def test_a_model_that_waits_for_another_to_leave_is_not_listed_as_loaded(own_server):
    """There is room for one model."""

    def listed() -> dict[str, str]:
        return {one["id"]: one["status"]["value"] for one in own_server.http.get("/models").json()["data"]}

    body = {"model": MODEL, "prompt": "Tell me", "n_predict": 2_000, "ignore_eos": True, "stream": True}
    with own_server.http.stream("POST", "/completion", json=body) as answer:
        lines = answer.iter_lines()
        assert next(lines)
        assert own_server.http.post("/models/load", json={"model": "ember-draft-q8_0"}).json() == {"success": True}
        found = listed()
    assert (found[MODEL], found["ember-draft-q8_0"]) == ("loaded", "loading")
    until(lambda: listed()["ember-draft-q8_0"] == "loaded")
    assert own_server.http.post("/slipstream/load", json={"model": MODEL}).status_code == 202
    own_server.wait_until(lambda state: (state["model"], state["phase"]) == (MODEL, "ready"))
