"""Measures this machine: ``python -m core.loading.probe_worker MODEL...`` prints a MachineProbe as JSON."""

from __future__ import annotations

import contextlib
import ctypes
import json
import sys
from pathlib import Path

from core.engine.engine import Engine
from core.llama.devices import list_devices
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.loading.memory_need import read_facts
from core.machine.host import core_count, last_level_cache, this_machine
from core.machine.kernel_probe import probe
from core.machine.known_machine import MachineProbe, TimedModel, as_dict
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, FinishReason
from core.values.request import Request, SamplingParams
from models.estimate.fit.memory import free_memory
from models.estimate.speed.probe import Probe

# Tokens of a first timing, which says how many fit into the time.
_FIRST_TOKENS = 16
# More would change the context length too much.
_MOST_TOKENS = 128


def time_decoding(engine: Engine, n_prompt: int, seconds: float) -> tuple[int, float]:
    """Decode without drafts after ``n_prompt`` tokens for about ``seconds``; raises RuntimeError if a request fails.

    Return how many tokens the middle one attended to, and the mean seconds per token.
    """
    first = _decode(engine, n_prompt, _FIRST_TOKENS)
    room = engine.n_ctx - n_prompt
    n_tokens = min(max(_FIRST_TOKENS, round(seconds / max(first, 1e-6))), _MOST_TOKENS, room)
    return n_prompt + n_tokens // 2, _decode(engine, n_prompt, n_tokens)


def _decode(engine: Engine, n_prompt: int, n_tokens: int) -> float:
    """Return the seconds per token after the first."""
    prompt = tuple(1 + position % 61 for position in range(n_prompt))
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    request = Request("timing", prompt, n_tokens, sampling=sampling, speculates=False)
    engine.submit(engine.prepare(request))
    while not engine.is_idle:
        for event in engine.step():
            if isinstance(event, Ended):
                if event.reason is FinishReason.FAILED or event.receipt.decode_rate <= 0:
                    raise RuntimeError(f"Decoding could not be timed: {event.failure}")
                taken = 1.0 / event.receipt.decode_rate
    return taken


# Bytes of a working set: twice the cache within these bounds, and an eighth of the free memory at most.
_SMALLEST_SET, _LARGEST_SET, _SHARE_OF_FREE = 64 << 20, 1 << 29, 8
_CACHES = 2  # times the last-level cache, so that nothing is found in it
# Seconds for which each model decodes.
_TIMING_SECONDS = 0.5
# Prompt lengths in tokens after which each model is timed: very short, and a few hundred.
_PROMPTS = (8, 512)
# malloc.h: M_MMAP_MAX is -4, M_TRIM_THRESHOLD -1. No block is a mapping of its own, and none goes back to the system.
_KEEP = ((-4, 0), (-1, (1 << 31) - 1))


def _measure_here(paths: list[str]) -> MachineProbe:
    silence_log()
    for path in paths:
        read_facts(path)  # fail on a bad file before the measurement, which takes seconds
    machine, threads = this_machine(), core_count()
    found: dict[str, Probe] = {}
    timed: list[TimedModel] = []
    for device in list_devices():
        is_cpu = device.kind == "cpu"
        if not is_cpu and not device.is_gpu:
            continue
        free = free_memory() if is_cpu else device.free
        n_bytes = min(max(_SMALLEST_SET, _CACHES * last_level_cache()), _LARGEST_SET, free // _SHARE_OF_FREE)
        result = probe(device, n_threads=threads, n_bytes=n_bytes)
        if result is not None:
            found[device.name] = result
            timed += _timed_models(paths, device.name, is_cpu, threads)
    return MachineProbe(machine.cpu, machine.ram, found, tuple(timed))


def _timed_models(paths: list[str], device: str, is_cpu: bool, n_threads: int) -> list[TimedModel]:
    timed = []
    for path in paths:
        options = EngineOptions(
            path,
            n_slots=1,
            n_threads=n_threads,
            n_gpu_layers=0 if is_cpu else None,
            devices=() if is_cpu else (device,),
            speculation="off",
        )
        engine, _ = load_engine(options, cache_folder=None)
        try:
            for n_prompt in _PROMPTS:
                timed.append(TimedModel(Path(path).name, device, *time_decoding(engine, n_prompt, _TIMING_SECONDS)))
        finally:
            engine.close()
    return timed


def _keep_freed_memory() -> None:
    """Let glibc hand freed memory out again: getting new pages took up to half the time of a measurement."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # TypeError: Windows has no CDLL(None)
        for parameter, value in _KEEP:
            ctypes.CDLL(None).mallopt(parameter, value)


def main(paths: list[str]) -> int:
    """Print what was measured as one JSON object."""
    _keep_freed_memory()
    print(json.dumps(as_dict(_measure_here(paths))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
