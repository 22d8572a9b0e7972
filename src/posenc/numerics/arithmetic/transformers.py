"""transformers: tables in float32, rounded to the activations' dtype, in which rotation happens."""

from posenc.frequencies import (
    NTK,
    Divided,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    Proportional,
    YaRN,
)
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile


class Transformers(Profile):
    """``LlamaRotaryEmbedding`` and ``apply_rotary_pos_emb``, which most of its models share."""

    name = "transformers"
    source = "src/transformers/models/llama/modeling_llama.py and modeling_rope_utils.py"
    version = "transformers 5.23.0"
    evidence = "run"
    said = (
        "frequencies, angles and cosines in float32; the table and every product and sum in the "
        "dtype of content"
    )
    pairings = ("half",)
    schedules = (Geometric, Linear, Llama3, YaRN, NTK, Divided, Proportional, FromCheckpoint)
    layout = "cos_sin"
    keeps = rotates = "content"

    def has(self, schedule: Schedule) -> bool:
        """Its proportional frequencies may be divided, too."""
        proportional = isinstance(schedule, Linear) and isinstance(schedule.of, Proportional)
        return proportional or super().has(schedule)
