"""File names become models, sidecars and quantisations."""

from __future__ import annotations

import pytest

from models.hub.repository import (
    FileRole,
    HubFile,
    choose,
    group,
    parsed_name,
    quantisation_of,
    role_of,
    with_projector,
)


def files(*paths: str) -> list[HubFile]:
    return [HubFile(path, 100 + len(path), "sha256:" + "0" * 64) for path in paths]


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("Llama-3.2-3B-Instruct-Q4_K_M", "Q4_K_M"), ("qwen2.5-0.5b-instruct-q8_0", "Q8_0"),
        ("gemma-3-4b-it-UD-IQ2_XXS", "UD-IQ2_XXS"), ("model.IQ4_NL", "IQ4_NL"), ("x-Q4_0_4_4", "Q4_0_4_4"),
        ("gpt-oss-120b-mxfp4", "MXFP4"), ("m-bf16", "BF16"), ("m-fp16", "F16"), ("m-Q6_K", "Q6_K"),
        ("m-Q6_K_L", "Q6_K_L"), ("m-TQ1_0", "TQ1_0"), ("Qwen3-8B", ""), ("Q8-is-a-name-Q5_K_S", "Q5_K_S"), ("", ""),
    ],
)  # fmt: skip
def test_quantisations_in_names(stem, expected):
    assert quantisation_of(stem) == expected


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("mmproj-F16.gguf", FileRole.PROJECTOR),
        ("model-mmproj-f16.gguf", FileRole.PROJECTOR),
        ("mtp-GLM-4.gguf", FileRole.DRAFT),
        ("MTP/GLM-4-Q8_0-MTP.gguf", FileRole.DRAFT),
        ("sub/mtp-GLM-4.gguf", FileRole.DRAFT),
        ("Qwen3.6-27B-MTP-Q8_0.gguf", FileRole.MODEL),
        ("eagle3-Qwen3-8B.gguf", FileRole.DRAFT),
        ("Qwen3-8B-speculator.eagle3.gguf", FileRole.DRAFT),
        ("Qwen3-8B-EAGLE3-Q8_0.gguf", FileRole.DRAFT),
        ("imatrix.gguf", FileRole.OTHER),
        ("draft/model.gguf", FileRole.DRAFT),
        ("Draftsman-7B.gguf", FileRole.MODEL),
        ("a/b/c.gguf", FileRole.MODEL),
    ],
)
def test_roles(path, role):
    assert role_of(path) is role


def test_split_files_are_one_item_and_missing_parts_are_counted():
    whole, holed = group(files(*(f"a-0000{i}-of-00003.gguf" for i in (2, 1, 3)), "bb-00001-of-00002.gguf"))[::-1]
    assert [file.path for file in whole.files] == [f"a-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    assert (whole.missing, holed.missing, holed.name) == (0, 1, "bb")


def test_names_in_any_script_and_a_folder_that_names_the_quantisation():
    (item,) = group(files("Q4_K_M/model-00001-of-00001.gguf"))
    assert (item.quantisation, item.name) == ("Q4_K_M", "model")
    found = {item.name for item in group(files("mein modell-Q4_0.gguf", "模型-Q4_0.gguf", "UPPER.GGUF", "no.bin"))}
    assert found == {"mein modell-Q4_0", "模型-Q4_0", "UPPER"}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("Q4_K_M", ["m-Q4_K_M"]), ("q4_k_m", ["m-Q4_K_M"]), ("Q8_0", ["m-Q8_0"]), ("q2_k_xl", ["m-UD-Q2_K_XL"]),
        ("m-Q8_0.gguf", ["m-Q8_0"]), ("sub/m-F16-00002-of-00002.gguf", ["m-F16"]),
        ("mmproj-m-Q8_0", ["mmproj-m-Q8_0"]), ("Q3_K_S", []), ("", ["m-Q4_K_M"]),
    ],
)  # fmt: skip
def test_what_a_user_types_chooses(wanted, expected):
    repository = group(
        files(
            "m-Q4_K_M.gguf",
            "m-Q8_0.gguf",
            "m-UD-Q2_K_XL.gguf",
            "sub/m-F16-00001-of-00002.gguf",
            "sub/m-F16-00002-of-00002.gguf",
            "mmproj-m-Q8_0.gguf",
        )
    )
    chosen = [item.name for item in choose(repository, wanted)]
    assert chosen == expected if wanted else len(chosen) == 5


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b", ("a/b", "", None)),
        ("a/b:Q4_0", ("a/b", "Q4_0", None)),
        ("https://huggingface.co/a/b", ("a/b", "", None)),
        ("https://huggingface.co/a/b/tree/main", ("a/b", "", None)),
        ("https://huggingface.co/a/b/blob/main/x/m%20Q4_0.gguf", ("a/b", "x/m Q4_0.gguf", None)),
        ("https://huggingface.co/a/b/resolve/v2/m-Q4_0.gguf?download=true", ("a/b", "m-Q4_0.gguf", "v2")),
        ("https://huggingface.co/a/b?show_file_info=m.gguf#top", ("a/b", "", None)),
        ("hf.co/a/b:Q4_0", ("a/b", "Q4_0", None)),
        ("huggingface.co/a/b/", ("a/b", "", None)),
        ("https://example.org/a/b", ("https", "//example.org/a/b", None)),
        ("https://huggingface.co/a", ("https", "//huggingface.co/a", None)),
    ],
)
def test_a_name_may_be_the_address_of_its_page(name, expected):
    assert parsed_name(name) == expected


@pytest.mark.parametrize(
    ("model", "projector"),
    [
        ("big-4b-Q4_K_M", "mmproj-big-4b-F16.gguf"),
        ("big-12b-Q4_K_M", "mmproj-big-12b-bf16.gguf"),
        ("big-12b-Q8_0", "mmproj-big-12b-bf16.gguf"),
        ("other-Q4_0", "mmproj-Q8_0.gguf"),
        ("tiny", "deep/mmproj-f16.gguf"),
        ("mmproj-Q8_0", None),
        ("alone", None),
    ],
)
def test_a_model_comes_with_its_projector(model, projector):
    repository = group(
        files(
            "big-4b-Q4_K_M.gguf",
            "big-12b-Q4_K_M.gguf",
            "Q8_0/big-12b-Q8_0.gguf",
            "other-Q4_0.gguf",
            "mmproj-big-4b-F16.gguf",
            "mmproj-big-4b-Q8_0.gguf",
            "mmproj-big-12b-bf16.gguf",
            "mmproj-Q8_0.gguf",
            "deep/folder/tiny.gguf",
            "deep/mmproj-f16.gguf",
            "much/deeper/folder/alone.gguf",
        )
    )
    (chosen,) = [item for item in repository if item.name == model]
    more = with_projector(chosen, repository).files[len(chosen.files) :]
    assert [file.path for file in more] == ([projector] if projector else [])
