"""The predict bench on three small models: its form, and that no prediction has seen its model."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import predict
from core.machine.known_machine import MachineProbe, TimedModel
from models.estimate.speed.machine import Machine
from models.estimate.speed.probe import Probe

PROBE = MachineProbe(
    "cpu", 1, {"CPU": Probe({"Q8_0": 20e9}, {}, 1e-6, 0.4)}, (TimedModel("ember-q8_0.gguf", "CPU", 70, 1e-3),)
)


@pytest.mark.slow
def test_the_report_has_its_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(predict, "TYPES", ("Q8_0",))
    monkeypatch.setattr(predict, "probe_machine", lambda models: PROBE)
    monkeypatch.setattr(predict.bandwidth, "LARGEST_SET", 64 << 20)
    picture = tmp_path / "predict.png"
    options = argparse.Namespace(layers=(1, 2), seconds=0.02, threads=1, seed=1, plot=picture)
    report = predict.measure(options).as_dict()
    assert len(report["rows"]) == 2 * 2 * 2
    assert {"median_error", "p90_error", "median_error_cold", "median_error_Q8_0"} <= report["summary"].keys()
    assert all(row["learnt"] > 0 and row["measured"] > 0 for row in report["rows"])
    assert picture.stat().st_size > 1_000


def _learnt(machine: Machine | None) -> Machine:
    """Leave out the free memory, which changes from one moment to the next."""
    assert machine is not None
    return replace(machine, devices=())


def test_a_prediction_has_not_seen_its_model_nor_one_of_its_size() -> None:
    members = [predict.Member("dense", "Q8_0", n) for n in (4, 8, 16)]
    samples = [
        predict.PredictSample(
            member, "empty", 10, seconds, 1, predict.Observation({"CPU: layer": member.n_layers}, seconds)
        )
        for member, seconds in zip(members, (1e-3, 2e-3, 4e-3), strict=True)
    ]
    usual = predict.predictors(30e9, PROBE, samples)["learnt"]
    wrong = [
        *samples[:2],
        predict.PredictSample(members[2], "empty", 10, 9.0, 1, predict.Observation({"CPU: layer": 16}, 9.0)),
    ]
    changed = predict.predictors(30e9, PROBE, wrong)["learnt"]
    assert _learnt(usual(samples[2])) == _learnt(changed(samples[2]))
    assert _learnt(usual(samples[0])) != _learnt(changed(samples[0]))
    few = predict.predictors(30e9, PROBE, samples)["few"]
    assert few(samples[0]) is None
    assert few(samples[2]) is not None
