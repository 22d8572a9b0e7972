"""What llama.cpp calls model types, and what it reads of each architecture."""

ARCHITECTURES = {
    "apertus": "apertus",
    "arcee": "arcee",
    "codellama": "llama",
    "cohere": "command-r",
    "exaone4": "exaone4",
    "falcon": "falcon",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3",
    "gemma3_text": "gemma3",
    "glm4": "glm4",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "granite": "granite",
    "granitemoe": "granitemoe",
    "llama": "llama",
    "minicpm": "minicpm",
    "minicpm3": "minicpm3",
    "mistral": "llama",
    "mixtral": "llama",
    "modernbert": "modern-bert",
    "nemotron": "nemotron",
    "olmo": "olmo",
    "olmo2": "olmo2",
    "olmoe": "olmoe",
    "phi": "phi2",
    "phi3": "phi3",
    "phimoe": "phimoe",
    "qwen2": "qwen2",
    "qwen2_moe": "qwen2moe",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "seed_oss": "seed_oss",
    "smollm3": "smollm3",
    "stablelm": "stablelm",
    "starcoder2": "starcoder2",
}
"""Architectures by model type, where the whole of the rotation follows from the keys."""

READS_ROPE_FREQS = frozenset({"apertus", "arcee", "deci", "exaone4", "llama"})
"""Those whose loader takes the tensor ``rope_freqs`` and whose graph divides by it."""

READS_LISTS = frozenset({"minicpm", "minicpm3", "phi3", "phimoe"})
"""Those whose files may hold ``rope_factors_short`` and ``rope_factors_long``."""

READS_SLIDING_BASE = frozenset({"modern-bert"})
"""Those that read ``rope.freq_base_swa``."""

FULL_LAYERS = {"gemma3": (6, 5), "modern-bert": (3, 0)}
"""Where sliding layers turn otherwise: of so many layers, which one is full in the program."""

SLIDING_BASES = {"gemma3": 10_000.0}
"""The base of sliding layers where the program fixes it; they are not scaled there."""

UNTURNED = {"exaone4": (4, 64), "smollm3": (4, None)}
"""Where the program leaves every so-manieth layer unturned, in models of so many layers (None: of
any number)."""

WHOLE_HEADS = frozenset({"apertus", "arcee", "deci", "exaone4", "falcon", "llama"})
"""Those of which all channels of a head must rotate."""
