"""What llama.cpp calls model types, and what it reads of each architecture."""

SAME = """
apertus arcee exaone4 falcon gemma gemma2 gemma3 glm4 granite granitemoe llama minicpm minicpm3
nemotron olmo olmo2 olmoe phi3 phimoe qwen2 qwen3 seed_oss smollm3 stablelm starcoder2
""".split()  # noqa: SIM905

ARCHITECTURES = {name: name for name in SAME} | {
    "codellama": "llama",
    "cohere": "command-r",
    "gemma3_text": "gemma3",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "mistral": "llama",
    "mixtral": "llama",
    "modernbert": "modern-bert",
    "phi": "phi2",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
}
"""Architectures by model type, where the whole rotation follows from the keys."""

READS_ROPE_FREQS = frozenset({"apertus", "arcee", "deci", "exaone4", "llama"})
"""Those whose loader takes the tensor ``rope_freqs`` and whose graph divides by it."""

READS_LISTS = frozenset({"minicpm", "minicpm3", "phi3", "phimoe"})
"""Those whose files may hold ``rope_factors_short`` and ``rope_factors_long``."""

READS_SLIDING_BASE = frozenset({"modern-bert"})
"""Those that read ``rope.freq_base_swa``."""

FULL_LAYERS = {"gemma3": (6, 5), "modern-bert": (3, 0)}
"""Where sliding layers rotate otherwise: of how many layers, which one is full in the program."""

SLIDING_BASES = {"gemma3": 10_000.0}
"""The base of sliding layers where the program fixes it; they are not scaled there."""

UNTURNED = {"exaone4": (4, 64), "smollm3": (4, None)}
"""Where the program leaves every n-th layer unrotated, in models of so many layers (None: any)."""

WHOLE_HEADS = READS_ROPE_FREQS | {"falcon"}
"""Those of which all channels of a head must rotate."""
