"""Sources for quantising: Ember in F16, whole and in parts."""

from __future__ import annotations

from pathlib import Path

import gguf

from tools.model_factory.gguf_factory import Recipe, cached, metadata_of, reader_of


def ember_f16() -> Path:
    """Ember with its matrices in F16."""
    return cached(Recipe(tensor_type="F16"))


def split_ember(folder: Path, n_parts: int = 2) -> list[Path]:
    """Ember in F16 as a model of several files; the first has the metadata."""
    source = ember_f16()
    tensors = reader_of(source).tensors
    per_part = -(-len(tensors) // n_parts)
    files = []
    for number in range(n_parts):
        path = folder / f"ember-f16-{number + 1:05}-of-{n_parts:05}.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        for entry in metadata_of(source) if number == 0 else []:
            if entry.key != "general.architecture":
                writer.add_key_value(entry.key, entry.value, entry.type, entry.item_type)
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", n_parts)
        writer.add_int32("split.tensors.count", len(tensors))
        for tensor in tensors[number * per_part : (number + 1) * per_part]:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        files.append(path)
    return files
