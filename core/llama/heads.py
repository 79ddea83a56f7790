"""Functions for draft heads beyond llama.h: the target's hidden states, and contexts that run on them.

llama.cpp exports these functions from llama-ext.h as C++ symbols, whose names depend on the compiler. Each is looked up
separately: if a library lacks one, only the heads that need it are unavailable.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.context import Batch, Context, DecodeStatus, EmbeddingBatch
from core.llama.library import FLOAT_P, INT32_P, L, quick
from core.llama.model import Model
from models.formatting.sentence import Sentence

StateRows = npt.NDArray[np.float32]


def _find(name: str, mangled: str, result: Any, *arguments: Any) -> Any:
    """Return a function of llama-ext.h, None if this library lacks it."""
    for symbol in (name, f"_Z{len(name)}{name}{mangled}"):
        function = getattr(quick, symbol, None)
        if function is not None:
            function.restype, function.argtypes = result, list(arguments)
            return function
    return None


_CONTEXT = ctypes.c_void_p
_set_hidden = _find("llama_set_embeddings_nextn", "P13llama_contextbb", None, _CONTEXT, ctypes.c_bool, ctypes.c_bool)
_get_hidden = _find("llama_get_embeddings_nextn", "P13llama_context", ctypes.c_void_p, _CONTEXT)
_set_layer_input = _find(
    "llama_set_embeddings_layer_inp", "P13llama_contextjb", None, _CONTEXT, ctypes.c_uint32, ctypes.c_bool
)
_get_layer_input = _find(
    "llama_get_embeddings_layer_inp", "P13llama_contextj", ctypes.c_void_p, _CONTEXT, ctypes.c_uint32
)
_target_layers = _find("llama_model_target_layer_ids", "PK11llama_model", INT32_P, ctypes.c_void_p)
_n_target_layers = _find("llama_model_target_layer_ids_n", "PK11llama_model", ctypes.c_uint32, ctypes.c_void_p)

_OF_HIDDEN = {"llama_set_embeddings_nextn": _set_hidden, "llama_get_embeddings_nextn": _get_hidden}
_OF_LAYERS = {
    "llama_set_embeddings_layer_inp": _set_layer_input,
    "llama_get_embeddings_layer_inp": _get_layer_input,
    "llama_model_target_layer_ids": _target_layers,
    "llama_model_target_layer_ids_n": _n_target_layers,
}
# The functions that each kind of head needs (``ProposerKind``).
_NEEDED = {"mtp": _OF_HIDDEN, "eagle3": _OF_HIDDEN | _OF_LAYERS, "dflash": _OF_LAYERS}
KINDS = tuple(_NEEDED)


def why_unavailable(kind: str) -> str | None:
    """Return why this build of llama.cpp cannot draft with a kind of head, as a sentence; None for any other kind."""
    missing = [name for name, function in _NEEDED.get(kind, {}).items() if function is None]
    return Sentence("This build of llama.cpp lacks {missing}.", missing=", ".join(missing)) if missing else None


def embedding_width(model: Model) -> int:
    """Return the width of a model's layers (``llama_model_n_embd``)."""
    return int(L.llama_model_n_embd(model.c))


def mask_token(model: Model) -> int:
    """Return the mask token, in place of a token to be drafted (``llama_vocab_mask``); negative if there is none."""
    return int(L.llama_vocab_mask(model.vocab.c))


def set_causal(context: Context, is_causal: bool) -> None:
    """Choose causal attention, or attention to all rows of the same sequence (``set_causal_attn``)."""
    L.llama_set_causal_attn(context.c, is_causal)


def uses_mrope(model: Model) -> bool:
    """Return whether a row without a token has four positions (M-RoPE) instead of one."""
    return bool(L.llama_model_rope_type(model.c) == L.LLAMA_ROPE_TYPE_MROPE)


def mrope_positions(positions: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the four positions of each row of a text, shape (4, n): the first three are equal, and the last is 0."""
    return np.vstack((positions, positions, positions, np.zeros_like(positions)))


def export_hidden(context: Context, *, of_outputs_only: bool) -> None:
    """Let a context keep the hidden state of each row, or only of rows whose logits are wanted."""
    _set_hidden(context.c, True, of_outputs_only)


def hidden(context: Context, n_rows: int, width: int) -> StateRows:
    """Return the last batch's hidden states, shape (n_rows, width), valid until the next decode.

    Call ``synchronize`` first: waiting here would block other threads, since the GIL is held.
    """
    return _rows(_get_hidden(context.c), n_rows, width)


def _rows(address: int | None, n_rows: int, width: int) -> StateRows:
    assert address, "the context hands out no hidden states"
    buffer = (ctypes.c_float * (n_rows * width)).from_address(address)
    return np.ndarray((n_rows, width), np.float32, buffer=memoryview(buffer))


class StateBatch(Batch):
    """A batch whose rows have a hidden state and a token: ``states`` has shape (capacity, width)."""

    def __init__(self, capacity: int, width: int) -> None:
        """Make room for ``capacity`` rows with states of ``width`` numbers, at first 0."""
        super().__init__(capacity)
        self.states = np.zeros((capacity, width), np.float32)
        self._c.embd = self.states.ctypes.data_as(FLOAT_P)


def layer_inputs(head: Model, target: Context, width: int) -> Callable[[int], tuple[StateRows, ...]]:
    """Let ``target`` keep the inputs (``width`` numbers each) of the layers that a head in a separate file reads.

    Return what gives them for so many rows of the last batch, one array for each layer, valid until the next decode.
    The target must be able to export them (``why_unavailable``), or llama.cpp aborts.
    """
    ids, n_layers = _target_layers(head.c), _n_target_layers(head.c)
    layers = tuple(int(ids[index]) for index in range(n_layers))
    for layer in layers:
        _set_layer_input(target.c, layer, True)

    def rows(n_rows: int) -> tuple[StateRows, ...]:
        return tuple(_rows(_get_layer_input(target.c, layer), n_rows, width) for layer in layers)

    return rows


def encode(context: Context, batch: EmbeddingBatch) -> DecodeStatus:
    """Run a head's encoder (``llama_encode``), of which every row is an output: ``hidden`` returns them next."""
    code = L.llama_encode(context.c, batch.c)
    context.synchronize()
    return DecodeStatus.OK if code == 0 else DecodeStatus(code)
