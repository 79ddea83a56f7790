"""What the library says in the window's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.estimate.fit.search import FitRequest
from models.estimate.speed.machine import DeviceKind, MachineDevice, machine_of
from models.facts.model_facts import read_model
from models.recommend.fit_report import fit_report
from tests.support.made_up_machines import larger
from tools.model_factory.gguf_factory import EMBER
from ui.library.labels import fit_sentence

FACTS = replace(larger(read_model(EMBER), 200), n_ctx_train=32_768)


@pytest.mark.parametrize("n_ctx", [None, 4_096, 32_768])
@pytest.mark.parametrize("wanted", [None, FitRequest(16_384, kv_types=("f16", "q8_0"))])
def test_a_verdict_is_said_as_the_commands_say_it(n_ctx: int | None, wanted: FitRequest | None) -> None:
    said = set()
    for share in range(1, 40):
        free = share * FACTS.weight_bytes // 10
        here = machine_of([MachineDevice("CPU", DeviceKind.CPU, free, free)])
        fit = fit_report(FACTS, here, n_ctx=n_ctx, wanted=wanted)
        assert fit_sentence(fit) == fit.sentence
        said.add(fit.sentence.split()[1])
    assert len(said) > 1  # what fits and what does not
