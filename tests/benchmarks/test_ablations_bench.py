"""What a rule of the policy is worth is found on a simulated machine, the same in each run."""

from __future__ import annotations

import pytest

from benchmarks.ablations import RULES, SimulatedWorkload, workloads


def test_a_workload_takes_the_same_time_in_each_run() -> None:
    workload = SimulatedWorkload("cpu", "right 1 of 2 times", is_repeating=True)
    assert workload.speedup() == workload.speedup()


def test_workloads_have_names_of_their_own() -> None:
    names = [workload.name for workload in workloads()]
    assert len(set(names)) == len(names) > 50


@pytest.mark.parametrize(
    ("rule", "workload", "most"),
    [
        ("risk budget", SimulatedWorkload("slow", "right for one text", 4, 1.5), 0.9),
        ("caution that grows with the loss", SimulatedWorkload("slow", "right for one text", 4, 1.5), 0.9),
        ("probes", SimulatedWorkload("cpu", "always right"), 0.7),
        ("rests", SimulatedWorkload("cpu", "never right", thought=0.0003), 0.99),
        ("worth of evidence", SimulatedWorkload("cpu", "right 3 of 4 times", knows_itself=True), 0.8),
        ("worth of a second", SimulatedWorkload("cpu", "always right", is_repeating=True), 0.95),
    ],
)
def test_each_rule_earns_its_keep_somewhere(rule: str, workload: SimulatedWorkload, most: float) -> None:
    """A rule whose workload does as well without it is to be deleted."""
    with_rule = workload.speedup()
    with RULES[rule]():
        assert workload.speedup() <= most * with_rule
