"""A run against a server whose every answer a test chooses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from app.environment.exit_codes import ExitCode
from app.jobs.batch import batch_run
from app.jobs.batch.batch_run import MAX_TRIES, BatchRun, BatchSettings, BatchStopped, look_through
from app.jobs.batch.endpoint import EndpointAnswer, ServerGone
from app.jobs.batch.job_file import JobFile
from app.jobs.batch.result_file import ResultFile
from core.values.errors import BadRequest

READY = {"phase": "ready"}


def answer(status: int, code: str | None = None, retry_after: float | None = None) -> EndpointAnswer:
    body: dict[str, Any] = {"error": {"message": f"It is {code}.", "code": code}} if status != 200 else {"usage": {}}
    return EndpointAnswer(status, body, "id", retry_after)


GOOD = answer(200)
DIED = answer(503, "engine_died")


class ScriptedEndpoint:
    """Answers a line by what it is told of it; ``states`` come one after the other, the last one stays."""

    def __init__(
        self, script: dict[str, Iterable[EndpointAnswer | Exception]], states: Iterable[Any] = (READY,)
    ) -> None:
        self.script = {name: list(answers) for name, answers in script.items()}
        self.states = list(states)
        self.sent: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.n_now = self.n_most = 0
        self.is_closed = False

    async def post(self, _path: str, body: dict[str, Any]) -> EndpointAnswer:
        name = body["prompt"]
        self.sent.append(name)
        self.bodies.append(body)
        self.n_now += 1
        self.n_most = max(self.n_most, self.n_now)
        try:
            await asyncio.sleep(0)
            script = self.script.get(name)
            one = script.pop(0) if script else GOOD
            if isinstance(one, Exception):
                raise one
            return one
        finally:
            self.n_now -= 1

    async def state(self) -> Any:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_run, "_FIRST_WAIT", 0.001)
    monkeypatch.setattr(batch_run, "_LONGEST_WAIT", 0.002)


def write_input(path: Path, names: Iterable[str]) -> None:
    lines = [
        {"custom_id": name, "method": "POST", "url": "/v1/completions", "body": {"prompt": name}} for name in names
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def run(
    folder: Path, endpoint: ScriptedEndpoint, n_parallel: int = 4, **settings: Any
) -> tuple[BatchRun, dict[str | None, Any]]:
    """Run folder/in to folder/out; return the run and the output by custom_id."""
    jobs, results = JobFile(str(folder / "in")), ResultFile(folder / "out")
    try:
        work = look_through(jobs, results)
        results.begin(work.history)
        settings = {"return_seconds": 60.0, "patience_seconds": 60.0} | settings
        one = BatchRun(work, results, endpoint, BatchSettings(n_parallel, **settings), lambda _tally: None)
        asyncio.run(one.run())
    finally:
        results.close()
        jobs.close()
    return one, output(folder)


def output(folder: Path) -> dict[str | None, Any]:
    records = [json.loads(line) for line in (folder / "out").read_text().splitlines()]
    found = {record["custom_id"]: record for record in records}
    assert len(found) == len(records), "a line twice"
    return found


def test_every_line_is_answered_once_and_no_more_run_than_may(tmp_path: Path) -> None:
    names = [f"r{i}" for i in range(50)]
    write_input(tmp_path / "in", names)
    endpoint = ScriptedEndpoint({})
    one, found = run(tmp_path, endpoint, n_parallel=3)
    assert set(found) == set(names)
    assert sorted(endpoint.sent) == sorted(names)
    assert endpoint.n_most == 3
    assert endpoint.is_closed
    assert one.tally.n_done == 50
    assert all(body["speed"] == "batch" for body in endpoint.bodies)


def test_a_second_run_does_only_what_is_left_or_was_added_below(tmp_path: Path) -> None:
    names = [f"r{i}" for i in range(20)]
    write_input(tmp_path / "in", names)
    run(tmp_path, ScriptedEndpoint({}))
    lines = (tmp_path / "out").read_bytes().splitlines(keepends=True)
    (tmp_path / "out").write_bytes(b"".join(lines[:12]) + lines[12][:-5])
    write_input(tmp_path / "in", [*names, "added"])
    endpoint = ScriptedEndpoint({})
    _, found = run(tmp_path, endpoint)
    assert set(found) == {*names, "added"}
    assert len(endpoint.sent) == 9


@pytest.mark.parametrize(
    ("names", "says"), [(["a", "x"], "Line 2 of .* the input has changed"), (["a"], "answers 1 line that")]
)
def test_an_input_that_has_changed_is_refused_and_the_output_stays(tmp_path: Path, names: list[str], says: str) -> None:
    write_input(tmp_path / "in", ["a", "b"])
    run(tmp_path, ScriptedEndpoint({}))
    before = (tmp_path / "out").read_bytes() + b'{"id": "batch_re'
    (tmp_path / "out").write_bytes(before)
    write_input(tmp_path / "in", names)
    with pytest.raises(BadRequest, match=says):
        run(tmp_path, ScriptedEndpoint({}))
    assert (tmp_path / "out").read_bytes() == before


def test_bad_and_refused_lines_are_reported_and_the_rest_runs(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a", "b"])
    with (tmp_path / "in").open("a") as file:
        file.write('nonsense\n\n{"custom_id": "c"}\n')
    one, found = run(tmp_path, ScriptedEndpoint({"a": [answer(400, "unknown_parameter")]}))
    assert (one.tally.n_done, one.tally.n_failed) == (1, 3)
    assert (found["a"]["response"]["status_code"], found["a"]["error"]) == (400, None)
    assert found["c"]["error"]["code"] == "invalid_method"
    assert (found[None]["error"]["code"], found[None]["error"]["line"]) == ("invalid_json", 3)


def test_a_line_with_a_known_custom_id_does_not_take_its_place(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a", "b", "a"])
    _, found = run(tmp_path, ScriptedEndpoint({}))
    assert found["a"]["response"]["status_code"] == 200
    assert found[None]["error"] == {
        "code": "duplicate_custom_id",
        "message": "The custom_id 'a' is that of line 1 already.",
        "line": 3,
    }
    endpoint = ScriptedEndpoint({})
    run(tmp_path, endpoint)
    assert endpoint.sent == [], "known from the line that is finished, too"


def test_a_dead_engine_and_faults_are_tried_again_a_few_times(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a", "b", "c"])
    endpoint = ScriptedEndpoint({"a": [DIED] * 2, "b": [DIED] * 99, "c": [answer(500, "internal_error")] * 99})
    _, found = run(tmp_path, endpoint)
    assert found["a"]["response"]["status_code"] == 200
    assert found["b"]["response"]["body"]["error"]["code"] == "engine_died"
    assert found["c"]["response"]["status_code"] == 500
    assert [endpoint.sent.count(name) for name in "abc"] == [3, MAX_TRIES, MAX_TRIES]


def test_lines_whose_engine_died_run_one_at_a_time(tmp_path: Path) -> None:
    names = [f"r{i}" for i in range(8)]
    write_input(tmp_path / "in", names)
    endpoint = ScriptedEndpoint({name: [DIED] for name in names})
    most: list[int] = []
    post = endpoint.post

    async def watched(path: str, body: dict[str, Any]) -> EndpointAnswer:
        reply = await post(path, body)
        if endpoint.sent.count(body["prompt"]) == 2:
            most.append(endpoint.n_now + 1)
        return reply

    endpoint.post = watched
    _, found = run(tmp_path, endpoint, n_parallel=8)
    assert set(found) == set(names)
    assert most == [1] * 8


def test_a_busy_server_is_asked_as_often_as_it_takes(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a"])
    busy = [answer(503, "queue_full", 0.0), answer(429)] * 6
    endpoint = ScriptedEndpoint({"a": busy})
    _, found = run(tmp_path, endpoint)
    assert len(endpoint.sent) == 13
    assert found["a"]["response"]["status_code"] == 200


def test_a_server_that_went_away_is_waited_for(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a", "b"])
    script = {"a": [ServerGone("reset")], "b": [answer(503, "shutting_down")]}
    _, found = run(tmp_path, ScriptedEndpoint(script, [None, None, {"phase": "loading"}, READY]))
    assert [found[name]["response"]["status_code"] for name in "ab"] == [200, 200]


GONE: Any = {"n_parallel": 1, "return_seconds": 0.05, "states": [None]}
FAILED: Any = {"states": [{"phase": "loading"}, {"phase": "failed"}]}


@pytest.mark.parametrize(
    ("script", "settings", "says", "code", "n_done"),
    [
        ([ServerGone("reset")], GONE, "did not come back", ExitCode.UNREACHABLE, 1),
        ([answer(503, "queue_full")] * 10_000, {"patience_seconds": 0.05}, "turned every line away", ExitCode.ERROR, 2),
        (
            [answer(503, "engine_unavailable")] * 99,
            FAILED,
            "Line 2 cannot be answered: It is",
            ExitCode.MODEL,
            None,
        ),
        ([answer(401, "invalid_api_key")], {}, "invalid_api_key", None, None),
    ],
)
def test_a_server_that_stays_away_or_turns_everything_away_ends_the_batch(
    tmp_path: Path, script: list[Any], settings: dict[str, Any], says: str, code: ExitCode | None, n_done: int | None
) -> None:
    write_input(tmp_path / "in", ["a", "b", "c"])
    states = settings.get("states", [READY])
    with pytest.raises(BatchStopped, match=says) as caught:
        run(tmp_path, ScriptedEndpoint({"b": script}, states), **{k: v for k, v in settings.items() if k != "states"})
    assert code is None or caught.value.exit_code is code
    assert "b" not in output(tmp_path)
    assert n_done is None or len(output(tmp_path)) == n_done


def test_a_line_that_breaks_every_connection_gets_its_error(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a", "b"])
    endpoint = ScriptedEndpoint({"a": [ServerGone("reset")] * 99})
    _, found = run(tmp_path, endpoint)
    assert found["a"]["error"]["code"] == "server_gone"
    assert endpoint.sent.count("a") == MAX_TRIES


def test_an_engine_that_is_left_alone_for_a_while_is_waited_for(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a"])
    away = [answer(503, "engine_unavailable", 0.0)] * 3
    endpoint = ScriptedEndpoint({"a": away}, [{"phase": "failed"}])
    _, found = run(tmp_path, endpoint)
    assert found["a"]["response"]["status_code"] == 200
    assert len(endpoint.sent) == 4


def test_a_line_whose_model_does_not_load_beside_others_gets_its_error(tmp_path: Path) -> None:
    write_input(tmp_path / "in", ["a", "b"])
    endpoint = ScriptedEndpoint({"a": [answer(503, "engine_unavailable")] * 99})
    _, found = run(tmp_path, endpoint)
    assert found["a"]["response"]["body"]["error"]["code"] == "engine_unavailable"
    assert endpoint.sent.count("a") == MAX_TRIES
    assert found["b"]["response"]["status_code"] == 200
