"""The model architectures that llama.cpp reads, and what Slipstream can do with each."""

from __future__ import annotations

from typing import Final

from models.formatting.safe_text import shortened
from models.formatting.sentence import Sentence


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Decoders: they continue a text token by token. The names are those of llama.cpp in the pinned llama-cpp-python.
TEXT: Final = _names("""
    llama llama4 deci falcon grok gpt2 gptj gptneox mpt baichuan starcoder refact bloom stablelm qwen qwen2 qwen2moe
    qwen2vl qwen3 qwen3moe qwen3next qwen3vl qwen3vlmoe qwen35 qwen35moe qwen4exp phi2 phi3 phimoe plamo plamo2
    plamo3 codeshell orion internlm2 minicpm minicpm3 gemma gemma2 gemma3 gemma3n gemma4 starcoder2 mamba mamba2
    maple jamba falcon-h1 xverse command-r cohere2 cohere2moe dbrx olmo olmo2 olmoe muse-glimmer openelm arctic
    deepseek deepseek2 deepseek2-ocr deepseek32 deepseek4 chatglm glm4 glm4moe glm-dsa bitnet jais jais2 nemotron
    nemotron_h nemotron_h_moe exaone exaone4 exaone-moe rwkv6 rwkv6qwen2 rwkv7 arwkv7 granite granitemoe
    granitehybrid graniteswitch granite_swa chameleon plm bailingmoe bailingmoe2 bailingmoe3 dots1 dots3note arcee
    afmoe laguna ernie4_5 ernie4_5-moe hunyuan-moe hunyuan-dense hunyuan_vl hy_v3 hy_v4 smollm3 gpt-oss lfm2 lfm2moe
    smallthinker seed_oss grovemoe apertus minimax-01 hrm_text minimax-m2 minimax-m3 cogvlm pangu-embedded mistral3
    mistral4 paddleocr mimo2 step35 spark2_5 maincoder kimi-linear kimi-k3 glm5-next talkie mellum nanbeige
""")
# Models that turn texts into vectors and write nothing.
EMBEDDERS: Final = _names("""
    bert modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 eurobert gemma-embedding llama-embed
""")
# llama.cpp switches flash attention off for these (llama_init_from_model), and with it caches of quantised types.
NO_FLASH_ATTENTION: Final = frozenset({"grok"})
DIFFUSION: Final = frozenset({"dream", "llada", "llada-moe", "rnd1"})
ENCODERS: Final = frozenset({"t5", "t5encoder"})
SPEECH: Final = frozenset({"pockettts", "qwen3tts", "wavtokenizer-dec"})
PROJECTORS: Final = frozenset({"clip"})
DRAFT_HEADS: Final = frozenset({"dflash", "eagle3", "gemma4-assistant"})
# Decoders whose graph exports the inputs of its layers: those that set t_layer_inp in llama.cpp's src/models. With any
# other, asking for them aborts the process (llm_graph_result::set_outputs).
HAND_OUT_LAYERS: Final = _names("""
    bailingmoe3 deepseek4 gemma4 gpt-oss hunyuan_vl lfm2 llama mimo2 minimax-01 minimax-m2 muse-glimmer nanbeige
    nemotron_h nemotron_h_moe qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen4exp
""")
# Decoders that can run their prediction heads: those with a graph_mtp in src/models that respect load_mtp. With any
# other, a context for the heads cannot be made, aborts, or runs the whole model.
RUN_MTP_HEADS: Final = _names("""
    bailingmoe3 cohere2moe deepseek2 deepseek32 deepseek4 glm-dsa glm4moe hy_v3 nemotron_h_moe qwen35 qwen35moe
    qwen3next step35
""")
# Architectures with several heads whose first may draft every token.
FIRST_MTP_HEAD_OF_SEVERAL: Final = frozenset({"hy_v3", "step35"})

_NOT_ALONE = (
    (
        PROJECTORS,
        Sentence("This file is a projector, which lets a model see or hear. Choose the model that it belongs to."),
    ),
    (DRAFT_HEADS, Sentence("This file only drafts tokens for a larger model. Choose the model that it belongs to.")),
    (DIFFUSION, Sentence("This model writes by diffusion, which Slipstream does not run. Choose another model.")),
    (ENCODERS, Sentence("This model needs an encoder, which Slipstream does not run. Choose another model.")),
    (SPEECH, Sentence("This model makes sound and cannot write. Choose a model that generates text.")),
)


def why_not(architecture: str) -> str | None:
    """A sentence that says why a model of this architecture cannot be used here, or None if it can."""
    if architecture in TEXT | EMBEDDERS:
        return None
    for family, sentence in _NOT_ALONE:
        if architecture in family:
            return sentence
    return Sentence(
        "The architecture {shown} is unknown to this llama.cpp. Update Slipstream, or choose another model.",
        shown=repr(shortened(architecture, 40)),
    )
