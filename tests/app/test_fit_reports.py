"""What is judged is what a load does: the same plan on any machine, for any model, with any settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.doctor.report import LlamaSystem
from app.environment.paths import model_settings_file
from app.fit_reports.fit_reports import CurrentMachine, current_machine, report_file
from app.settings.model_settings_store import ModelSettingsStore
from app.settings.server_settings import ServerSettings
from app.settings.worker_tokens import VARIABLE
from core.loading.memory_fit import LoadPlan, fit
from core.values.engine_options import Device, EngineOptions
from core.values.errors import ModelDoesNotFit
from core.values.model_settings import ModelSettings
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.facts.model_facts import ModelFacts, read_model
from tests.support.lending import TOKEN, TestWorker
from tests.support.made_up_machines import larger
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached

GB = 10**9
DENSE = replace(larger(read_model(EMBER), 200), n_ctx_train=32_768)
EXPERTS = replace(larger(read_model(cached(Recipe(n_experts=4, n_experts_used=2))), 200), n_ctx_train=32_768)
DRAFT = larger(read_model(EMBER_DRAFT), 40)
OWN = (
    ModelSettings(),
    ModelSettings(kv_type="q8_0", gpu_layers=5),
    ModelSettings(ctx=16_384),
    ModelSettings(ctx=20_000, kv_type="f16", gpu_layers=7),
)
GIGABYTES = st.floats(0.3, 12.0)
COMPUTE = 400_000_000


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """A processor and up to two GPUs, measured or not."""
    host = int(draw(GIGABYTES) * GB)
    rate = draw(st.sampled_from([None, 25e9, 400e9]))
    devices = [MachineDevice("CPU", DeviceKind.CPU, host, host, rate)]
    for at in range(draw(st.integers(0, 2))):
        free = int(draw(GIGABYTES) * GB)
        kind = draw(st.sampled_from([DeviceKind.GPU, DeviceKind.IGPU]))
        devices.append(MachineDevice(f"GPU{at}", kind, free, free, rate and draw(st.sampled_from([5e9, 900e9]))))
    return machine_of(devices)


def loaded(
    facts: ModelFacts, machine: Machine, own: ModelSettings, draft: str | None, must_draft: bool
) -> LoadPlan | None:
    """How a server would load the model; None where it would not."""
    options = replace(ServerSettings().engine_options(str(EMBER), own), draft_path=draft, must_draft=must_draft)
    try:
        return fit(facts, options, machine, compute)
    except ModelDoesNotFit:
        return None


def compute(options: EngineOptions) -> int | None:
    """What llama.cpp might say of its buffers."""
    return COMPUTE if options.n_gpu_layers else None


@pytest.mark.parametrize("own", OWN, ids=lambda own: str(own.given))
@pytest.mark.parametrize("facts", [DENSE, EXPERTS], ids=["dense", "experts"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(machine=machines(), must_draft=st.sampled_from([None, False, True]))
def test_a_model_is_loaded_as_it_was_judged(
    facts: ModelFacts, own: ModelSettings, machine: Machine, must_draft: bool | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.loading.memory_need.compute_bytes", compute)
        patch.setattr("core.loading.memory_fit.read_model", lambda path: DRAFT)
        patch.setattr("app.settings.model_settings_store.settings_of", lambda path: own)
        must = bool(must_draft)
        draft = DRAFT if must_draft is not None else None
        judgement = report_file(facts, EMBER, CurrentMachine(machine, ()), draft=draft, must_draft=must)
        found = loaded(facts, machine, own, str(EMBER_DRAFT) if draft is not None else None, must)
    plan = judgement.plan
    assert plan is not None
    assert judgement.fits == (found is not None)
    if found is None:
        return
    chosen = found.options
    setting = (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.kv_type, found.size.n_ctx)
    assert setting == (plan.setting.n_gpu_layers, plan.setting.n_cpu_moe, plan.setting.kv_type, plan.setting.n_ctx)
    assert (chosen.draft_path is not None) == plan.has_draft
    assert own.ctx in (None, found.size.n_ctx)
    assert own.kv_type in (None, chosen.kv_type)
    assert own.gpu_layers is None or chosen.n_gpu_layers == (own.gpu_layers if machine.gpus else 0)


def test_what_is_set_for_a_model_counts_in_its_judgement() -> None:
    facts = read_model(EMBER)
    here = CurrentMachine(machine_of([MachineDevice("CPU", DeviceKind.CPU, 20 * GB, 20 * GB)]), ())
    before = report_file(facts, EMBER, here).plan
    ModelSettingsStore(model_settings_file()).change(EMBER, "ember", lambda old: ModelSettings(ctx=512, kv_type="q8_0"))
    after = report_file(facts, EMBER, here).plan
    assert before is not None
    assert after is not None
    assert (before.setting.n_ctx, before.setting.kv_type) == (1024, "f16")
    assert (after.setting.n_ctx, after.setting.kv_type) == (512, "q8_0")


def test_a_worker_that_is_set_for_a_model_counts_while_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    own = machine_of([MachineDevice("CPU", DeviceKind.CPU, GB, GB // 2)])
    worker = TestWorker(memory=64 * GB)
    try:
        settings = ModelSettings(worker=worker.address)
        ModelSettingsStore(model_settings_file()).change(EMBER, "ember", lambda old: settings)
        found = report_file(DENSE, EMBER, CurrentMachine(own, ()), is_quick=True)
    finally:
        worker.close()
    assert found.fits, found.sentence
    assert f"on {worker.address}/CPU" in found.sentence
    assert found.notes == ()
    alone = report_file(DENSE, EMBER, CurrentMachine(own, ()), is_quick=True)
    assert not alone.fits
    assert alone.notes[-1].startswith(f"It is judged for this machine alone. The worker {worker.address} cannot be")


def test_llama_cpp_is_asked_for_devices_only_where_it_is_made_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Device("CUDA0", "A GPU", "gpu", 8 * GB, 8 * GB)
    asked: list[str] = []

    def check_llama() -> LlamaSystem:
        asked.append("devices")
        return LlamaSystem(devices=(gpu,))

    monkeypatch.setattr("app.doctor.checks.check_llama", check_llama)
    for backends, names in (((), ["CPU"]), (("cuda",), ["CPU", "CUDA0"])):
        monkeypatch.setattr("core.llama.build.gpu_backends", lambda backends=backends: backends)
        assert [device.name for device in current_machine().machine.devices] == names
    assert asked == ["devices"]
