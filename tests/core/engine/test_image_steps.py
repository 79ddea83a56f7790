"""Which image a step evaluates, where the encoder's thread goes on between two looks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.engine.image_steps import ImageSteps
from core.scheduler.images import Encoding, ImageRows
from core.values.errors import BadRequest


def fails(encoding: Encoding) -> None:
    encoding.error = BadRequest("The image is damaged.")


def has_other_rows(encoding: Encoding) -> None:
    encoding.parts = [np.zeros((3, 8), np.float32)]


@pytest.mark.parametrize("happens", [fails, has_other_rows])
def test_an_image_that_breaks_behind_the_look_at_it_is_left_to_the_next_one(happens: Any) -> None:
    rows = ImageRows(0, 4, np.arange(4, dtype=np.int32), b"image", 0, b"")
    sequence: Any = SimpleNamespace(
        image=rows, next_image=rows, images=(rows,), n_past=0, encodings={}, order=0, lane=SimpleNamespace(rank=0)
    )
    encoding, ended = Encoding(b""), []
    encoder: Any = SimpleNamespace(encode=lambda rows: encoding, is_causal=True)
    finisher: Any = SimpleNamespace(finish=lambda sequence, reason, events, now, failure: ended.append(failure.message))
    scheduler: Any = SimpleNamespace(running=[sequence])
    steps = ImageSteps(encoder, scheduler, finisher)
    assert steps.prepare([], 0.0) == []
    happens(encoding)
    assert steps.next_share(8, is_alone=True, may_run=lambda sequence, n_rows: True) is None
    assert not ended
    steps.prepare([], 0.0)
    assert len(ended) == 1


def test_an_image_that_is_there_is_evaluated() -> None:
    rows = ImageRows(0, 4, np.arange(4, dtype=np.int32), b"image", 0, b"")
    sequence: Any = SimpleNamespace(image=rows, encodings={b"image": Encoding(b"")}, n_past=0, order=0)
    sequence.lane = SimpleNamespace(rank=0)
    sequence.encodings[b"image"].parts = [np.zeros((4, 8), np.float32)]
    scheduler: Any = SimpleNamespace(running=[sequence])
    encoder: Any = SimpleNamespace(is_causal=True)
    share = ImageSteps(encoder, scheduler, encoder).next_share(8, is_alone=True, may_run=lambda one, n_rows: True)
    assert share is not None
    assert (share.sequence, share.n_rows) == (sequence, 4)
