"""The speed model: what it knows before a run, how runs move it, the file that keeps them, and peaks of devices."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from models.estimate.speed.efficiency import Observation, learn, prior
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of, peak_of
from models.estimate.speed.probe import Probe
from models.estimate.speed.runs import FILE_NAME, ModelRun, add_runs, judged, measured, observations, read_runs
from models.estimate.speed.work import Placement, work
from models.facts.model_facts import read_model
from models.formatting.json_values import plain, value_of
from tools.model_factory.gguf_factory import EMBER, Recipe, cached

CPU = MachineDevice("CPU", DeviceKind.CPU, 1, 1)
PROBE = Probe({"Q4_0": 15e9, "Q8_0": 20e9, "F16": 25e9}, {"F16": 8e9}, 1e-6, 0.4)
FAMILY = [Recipe(n, kind) for n in (4, 8, 16) for kind in ("Q4_0", "Q8_0", "F16")]


def amounts(path: Path = EMBER, n_past: int = 0):
    facts = read_model(path)
    return work(facts, Placement.all_on(0, facts.n_layers), [CPU], n_past=n_past)


def before(probe: Probe | None = PROBE, bandwidth: float | None = 30e9):
    return prior("CPU", is_cpu=True, bandwidth=bandwidth, probe=probe)


def truth(given: dict[str, float]) -> float:
    """A machine on which Q4_0 is slower than probed and layers cost more."""
    rates = {"Q4_0": 9e9, "Q8_0": 19e9, "F16": 26e9, "F32": 20e9}
    seconds = 3e-4 + 9e-5 * given.get("CPU: layer", 0)
    for name, amount in given.items():
        if name.startswith("CPU: weights"):
            seconds += amount / rates[name.rpartition(" ")[2]]
    return seconds


def test_a_type_costs_what_the_probe_says_and_others_their_usual_share():
    known, guessed = before(), before(probe=None)
    assert known["CPU: weights Q8_0"].seconds == pytest.approx(1 / 20e9)
    assert guessed["CPU: weights Q8_0"].seconds > 1 / 30e9
    assert known["CPU: weights Q8_0"].spread < known["CPU: weights Q6_K"].spread
    assert before(probe=None, bandwidth=None) == {}
    assert before(probe=None, bandwidth=math.inf) == {}
    machine = machine_of([MachineDevice("CPU", DeviceKind.CPU, 1, 1)])
    assert machine.efficiency.seconds(amounts()) is machine.efficiency.seconds({}) is None


def test_runs_of_other_sizes_teach_what_each_type_costs():
    paths = {recipe: cached(recipe) for recipe in FAMILY}
    runs = [Observation(amounts(path), truth(amounts(path))) for path in paths.values()]
    taught = learn(before(), runs)
    unseen = amounts(cached(Recipe(32, "Q4_0")))
    untaught_error = abs(math.log(learn(before(), []).seconds(unseen) / truth(unseen)))
    taught_error = abs(math.log(taught.seconds(unseen) / truth(unseen)))
    assert taught_error < 0.1 < untaught_error
    assert taught.n_runs == len(FAMILY)


def test_one_run_moves_all_types_a_little_and_an_outlier_among_others_hardly():
    own = amounts()
    seconds = learn(before(), []).seconds(own)
    taught = learn(before(), [Observation(own, 2 * seconds)])
    moved = {name: taught.constants[name].seconds / before()[name].seconds for name in before()}
    assert moved["CPU: layer"] > moved["CPU: weights F16"] > 1.05
    assert seconds < taught.seconds(own) < 2 * seconds
    own = amounts()
    seconds = learn(before(), []).seconds(own)
    usual = [Observation(own, seconds)] * 5
    disturbed = learn(before(), [*usual, Observation(own, 20 * seconds)])
    assert disturbed.seconds(own) < 1.25 * seconds


@pytest.mark.parametrize("bad", [Observation({}, 1.0), Observation({"CPU: layer": 6}, 0.0), Observation({"x": 1}, 1.0)])
def test_runs_that_say_nothing_change_nothing(bad):
    assert learn(before(), [bad]).constants == before()


def test_two_memories_add_their_times():
    devices = [MachineDevice("CPU", DeviceKind.CPU, 1, 1, 20e9), MachineDevice("GPU", DeviceKind.GPU, 1, 1, 200e9)]
    machine, facts = machine_of(devices), read_model(EMBER)
    split = Placement((0, 0, 0, 1, 1, 1), (0, 0, 0, 1, 1, 1), 1)
    given = work(facts, split, machine.devices, n_past=100)
    parts = [{n: a for n, a in given.items() if n.startswith(device)} for device in ("CPU", "GPU")]
    assert machine.efficiency.seconds(given) == pytest.approx(sum(map(machine.efficiency.seconds, parts)))
    assert given["CPU: layer"] == given["GPU: layer"] == 3


RUN = ModelRun("model", 100, "f16 cache", "", {"CPU: layer": 6.0}, 0.01, 100.0, 50, 64, 0, 0, 1_000.0)


def test_runs_are_kept_and_read_again(tmp_path):
    add_runs(tmp_path, "here", [RUN])
    add_runs(tmp_path, "here", [replace(RUN, model="other", draft="small", n_drafted=10, n_accepted=7)])
    runs = read_runs(tmp_path, "here")
    assert runs[0] == RUN
    assert judged(runs, "other", 100, "small") == (10, 7)
    assert judged(runs, "model", 100, "small") == judged(runs, "other", 101, "small") == (0, 0)
    assert read_runs(tmp_path, "elsewhere") == ()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_runs_that_are_added_at_once_are_all_kept(tmp_path):
    names = [f"model {number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: add_runs(tmp_path, "here", [replace(RUN, model=name)]), names))
    assert {run.model for run in read_runs(tmp_path, "here")} == set(names)


def test_the_newest_runs_of_each_kind_stay_and_their_median_counts(tmp_path):
    times = [0.01] * 6 + [0.012] * 4
    add_runs(tmp_path, "here", [replace(RUN, seconds=s, rate=1 / s, at=float(i)) for i, s in enumerate(times)])
    runs = read_runs(tmp_path, "here")
    assert [run.at for run in runs] == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    (seen,) = observations(runs)
    assert seen.seconds == 0.012
    assert measured(runs, "model", 100).n_runs == 7
    assert measured(runs, "model", 101) is None


def seen_after(folder, *times):
    """Add runs that took so many seconds, one at a time; return what counts as that of a token."""
    for seconds in times:
        add_runs(folder, "here", [replace(RUN, seconds=seconds, rate=1 / seconds)])
    (seen,) = observations(read_runs(folder, "here"))
    assert measured(read_runs(folder, "here"), "model", 100).plain_rate == pytest.approx(1 / seen.seconds)
    return seen.seconds


def test_a_run_that_was_disturbed_is_not_kept_and_a_machine_that_has_changed_is_soon_believed(tmp_path):
    assert seen_after(tmp_path, 0.25, 0.010) == 0.010
    assert seen_after(tmp_path, 0.012, 0.25, 0.011, 0.25) == 0.011
    assert [run.seconds for run in read_runs(tmp_path, "here")] == [0.010, 0.012, 0.011]
    assert seen_after(tmp_path, 0.030, 0.031) == 0.011
    assert seen_after(tmp_path, 0.032) == 0.031
    assert [run.seconds for run in read_runs(tmp_path, "here")] == [0.030, 0.031, 0.032]
    assert seen_after(tmp_path, 0.011) == 0.011
    assert len(read_runs(tmp_path, "here")) == 1


def test_outliers_of_one_kind_say_nothing_of_another_and_slow_runs_are_believed_only_in_a_row(tmp_path):
    add_runs(tmp_path, "here", [RUN, replace(RUN, n_past=5_000, seconds=0.02), replace(RUN, model="b", seconds=0.04)])
    for slow in (0.05, 0.05, 0.01, 0.05, 0.05, 0.09):
        add_runs(tmp_path, "here", [replace(RUN, seconds=slow)])
    assert [run.seconds for run in read_runs(tmp_path, "here")] == [0.01, 0.02, 0.04, 0.01]


def test_a_file_that_was_made_with_guessed_seconds_counts_as_empty(tmp_path):
    add_runs(tmp_path, "here", [RUN])
    content = json.loads((tmp_path / FILE_NAME).read_text())
    del content["format"]
    (tmp_path / FILE_NAME).write_text(json.dumps(content))
    assert read_runs(tmp_path, "here") == ()
    assert seen_after(tmp_path, 0.25) == 0.25


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"machine": "here", "runs": 5}', '{"machine": "here", "runs": [{}, 5, null]}', "[" * 100_000],
)
def test_a_damaged_file_counts_as_empty_and_is_replaced(tmp_path, content):
    (tmp_path / FILE_NAME).write_text(content)
    assert read_runs(tmp_path, "here") == ()
    add_runs(tmp_path, "here", [RUN])
    assert read_runs(tmp_path, "here") == (RUN,)


@pytest.mark.parametrize(
    "change",
    [{"seconds": 0}, {"seconds": -1}, {"seconds": math.nan}, {"rate": "fast"}, {"amounts": {}}, {"amounts": {"a": -1}},
     {"at": 1e18}, {"n_bytes": None}, {"seconds": 1e9}],
)  # fmt: skip
def test_runs_that_no_machine_makes_are_left_out(tmp_path, change):
    add_runs(tmp_path, "here", [RUN, replace(RUN, model="good")])
    content = json.loads((tmp_path / FILE_NAME).read_text())
    content["runs"][0] |= change
    (tmp_path / FILE_NAME).write_text(json.dumps(content))
    assert [run.model for run in read_runs(tmp_path, "here")] == ["good"]


def test_a_probe_goes_through_json_and_nonsense_is_refused():
    assert value_of(Probe, json.loads(json.dumps(plain(PROBE)))) == PROBE
    assert not value_of(Probe, {}).is_possible
    assert not value_of(Probe, {"weights": {"Q4_0": -1}}).is_possible
    with pytest.raises(TypeError):
        value_of(Probe, {"weights": {"Q4_0": 1}, "node": "x"})


def test_small_models_are_read_from_the_cache_and_large_ones_from_memory():
    facts = read_model(EMBER)
    placement = Placement.all_on(0, facts.n_layers)
    size = sum(amount for name, amount in amounts().items() if ": weights" in name)

    def near_share(cache: float) -> float:
        found = work(facts, placement, [replace(CPU, probe=Probe(cache=cache))], n_past=0)
        read = {name: amount for name, amount in found.items() if "weights" in name}
        assert sum(read.values()) == pytest.approx(size)
        return sum(amount for name, amount in read.items() if ": near weights" in name) / size

    shares = [near_share(cache) for cache in (0.0, size / 2, size, 1.2 * size, 4 * size)]
    assert shares == sorted(shares)
    assert shares[:2] == [0.0, 0.0]
    assert 0.0 < shares[2] < 1.0
    assert shares[-1] == 1.0


def test_all_experts_count_for_what_stays_in_the_cache():
    facts = read_model(cached(Recipe(8, "Q8_0", 4, 1)))
    whole = facts.weight_bytes
    found = work(facts, Placement.all_on(0, facts.n_layers), [replace(CPU, probe=Probe(cache=whole / 2))], n_past=0)
    assert not any("near" in name for name in found)


def test_what_the_cache_holds_costs_what_the_probe_says_of_few_bytes():
    probe = Probe(PROBE.weights, PROBE.cached, 1e-6, 0.4, {"Q8_0": 60e9, "Q4_0": 1e9}, 64e6)
    known = before(probe)
    assert known["CPU: near weights Q8_0"].seconds == pytest.approx(1 / 60e9)
    assert known["CPU: near weights Q4_0"].seconds == pytest.approx(1 / 15e9), "never slower than from memory"
    assert known["CPU: near weights Q6_K"].seconds == known["CPU: weights Q6_K"].seconds, "not probed"
    assert before()["CPU: near weights Q8_0"].seconds == pytest.approx(1 / 20e9)


def test_runs_of_small_models_say_little_of_large_ones():
    """Those that stay in the cache run several times as fast as memory could feed them."""
    probe = Probe(PROBE.weights, PROBE.cached, 1e-6, 0.4, {"Q8_0": 60e9}, 64e6)
    small, large = {"CPU: near weights Q8_0": 10e6, "CPU: layer": 8.0}, {"CPU: weights Q8_0": 1e9, "CPU: layer": 8.0}
    untaught = learn(before(probe), []).seconds(large)
    taught = learn(before(probe), [Observation(small, 10e6 / 90e9 + 8 * 4e-5)] * 4).seconds(large)
    assert taught == pytest.approx(untaught, rel=0.15)


GB = 10**9
DENSE = read_model(EMBER)
EXPERTS = read_model(cached(Recipe(n_experts=4, n_experts_used=2)))
FIRST, SECOND = 0, 1


def machine(*, cpu: float | None = 20 * GB, gpu: Probe | None = None) -> Machine:
    return machine_of(
        [
            MachineDevice("CPU", DeviceKind.CPU, 16 * GB, 16 * GB, cpu),
            MachineDevice("CUDA0", DeviceKind.GPU, 8 * GB, 8 * GB, None, gpu),
        ]
    )


PROBED = machine(gpu=Probe({"Q4_0": 300.0 * GB, "F16": 400.0 * GB}))


def test_on_one_device_it_is_what_was_measured_there() -> None:
    assert peak_of(DENSE, Placement.all_on(FIRST, DENSE.n_layers), PROBED) == pytest.approx(20 * GB)
    assert peak_of(DENSE, Placement.all_on(SECOND, DENSE.n_layers), PROBED) == pytest.approx(400 * GB)
    unknown = machine(cpu=None)
    assert peak_of(DENSE, Placement.all_on(FIRST, DENSE.n_layers), unknown) is None
    assert peak_of(DENSE, Placement.all_on(SECOND, DENSE.n_layers), unknown) is None
    # A device that holds nothing need not be known.
    assert peak_of(DENSE, Placement.all_on(FIRST, DENSE.n_layers), machine()) == pytest.approx(20 * GB)


def test_on_two_devices_the_time_of_both_counts() -> None:
    everywhere = Placement.all_on(SECOND, DENSE.n_layers)
    first = DENSE.weight_map.layers[0].n_bytes
    split = replace(everywhere, layers=(FIRST, *everywhere.layers[1:]), experts=(FIRST, *everywhere.experts[1:]))
    rest = sum(layer.n_bytes for layer in DENSE.weight_map.layers[1:]) + DENSE.weight_map.output.n_bytes
    seconds = first / (20 * GB) + rest / (400 * GB)
    assert peak_of(DENSE, split, PROBED) == pytest.approx((first + rest) / seconds)


def test_of_experts_those_count_that_a_token_reads() -> None:
    on_host = replace(Placement.all_on(SECOND, EXPERTS.n_layers), experts=(FIRST,) * EXPERTS.n_layers)
    layers = EXPERTS.weight_map.layers
    read = sum(layer.expert_bytes for layer in layers) / 2
    rest = sum(layer.n_bytes - layer.expert_bytes for layer in layers) + EXPERTS.weight_map.output.n_bytes
    assert read > 0
    assert peak_of(EXPERTS, on_host, PROBED) == pytest.approx((read + rest) / (read / (20 * GB) + rest / (400 * GB)))
