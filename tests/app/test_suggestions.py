"""The list to begin with is judged on any machine, by its figures alone."""

from __future__ import annotations

import socket
from itertools import groupby

import pytest

from app.fit_reports.fit_reports import CurrentMachine
from app.fit_reports.suggestions import first_choices, suggestions
from models.estimate.fit.summary import FitVerdict
from models.estimate.speed.machine import DeviceKind, MachineDevice, machine_of
from models.library.values import SuggestionTier
from models.recommend.recommend import ENOUGH

GB = 10**9


def machine(ram: float, *, rate: float | None = 40e9, vram: float = 0.0) -> CurrentMachine:
    devices = [MachineDevice("CPU", DeviceKind.CPU, int(ram * GB), int(ram * GB), rate)]
    if vram:
        devices.append(MachineDevice("GPU0", DeviceKind.GPU, int(vram * GB), int(vram * GB), 900e9))
    return CurrentMachine(machine_of(devices), ())


@pytest.fixture(autouse=True)
def no_network(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refused)


@pytest.mark.parametrize("here", [machine(4), machine(16), machine(64, vram=24), machine(512)])
def test_every_entry_has_a_verdict_and_what_fits_a_speed(here):
    found = suggestions(here)
    assert len(found) > 20
    for one in found:
        assert one.judgement.verdict is not FitVerdict.UNUSABLE
        assert (one.rate is not None) == one.judgement.fits
        assert one.file in one.model.files


def test_more_memory_never_fits_less():
    fitting = [sum(one.judgement.fits for one in suggestions(machine(ram))) for ram in (2, 4, 8, 16, 32, 64, 128)]
    assert fitting == sorted(fitting)
    assert fitting[-1] == len(suggestions(machine(2)))


@pytest.mark.parametrize("here", [machine(8), machine(32), machine(64, vram=24)])
def test_what_fits_best_comes_first_within_its_use(here):
    for _, models in groupby(suggestions(here), key=lambda one: one.model.use):
        listed = list(models)
        quick = [one.judgement.verdict is FitVerdict.GREEN and (one.rate or 0.0) >= ENOUGH for one in listed]
        fits = [one.judgement.fits for one in listed]
        assert quick == sorted(quick, reverse=True)
        assert fits == sorted(fits, reverse=True)
        sizes = [one.model.n_params for one, is_quick in zip(listed, quick, strict=True) if is_quick]
        assert sizes == sorted(sizes, reverse=True)


def test_a_machine_nobody_measured_has_no_speeds_and_the_least_work_first():
    found = suggestions(machine(64, rate=None))
    assert {one.rate for one in found} == {None}
    everyday = [one.model.title for one in found if one.model.use == "everyday"]
    assert everyday.index("Gemma 4 E4B") < everyday.index("Mistral Small 3.2 24B")


def test_a_finer_quantisation_is_taken_where_there_is_room_and_time():
    def taken(here: CurrentMachine) -> str:
        return next(one.file.quantisation for one in suggestions(here) if one.model.title == "Qwen3.5 4B")

    assert (taken(machine(6)), taken(machine(64, rate=400e9))) == ("Q4_K_M", "Q8_0")


def test_experts_are_faster_than_dense_models_and_heads_in_a_file_are_judged():
    rates = {one.model.title: one.rate for one in suggestions(machine(64))}
    assert rates["Qwen3.6 35B-A3B"] > 4 * rates["Qwen3.6 27B"]
    (one,) = (one for one in suggestions(machine(64)) if one.model.title == "Qwen3.6 27B")
    assert one.judgement.with_draft is not None


@pytest.mark.parametrize(
    ("here", "titles"),
    [
        (machine(64, rate=None), []),
        (machine(25, rate=20e9), ["Qwen3.5 0.8B", "LFM2.5 8B-A1B", "Qwen3.6 35B-A3B"]),
        (machine(64, vram=24), ["Qwen3.6 35B-A3B", "gpt-oss 120B"]),
        (machine(1), []),
    ],
)
def test_newcomers_are_offered_a_quick_one_the_best_and_one_between(here, titles):
    chosen = first_choices(suggestions(here))
    assert list(chosen) == [choice for choice in SuggestionTier if choice in chosen]
    assert all(one.judgement.verdict is FitVerdict.GREEN for one in chosen.values())
    assert [one.model.title for one in chosen.values()] == titles
