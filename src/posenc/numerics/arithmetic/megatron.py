"""Megatron-LM: angles are kept in float32, and their cosines rounded to the dtype of content."""

from posenc.frequencies import Geometric, Linear, Llama3, YaRN
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile
from posenc.numerics.pairing import Pairing


class Megatron(Profile):
    """``RotaryEmbedding`` and ``_apply_rotary_pos_emb_bshd``, unfused (``--no-rope-fusion``)."""

    name = "megatron"
    source = "megatron/core/models/common/embeddings/rotary_pos_embedding.py and rope_utils.py"
    version = "megatron-core 0.16.1"
    evidence = "run"
    said = (
        "frequencies, angles and cosines in float32; cosines and every product and sum in the "
        "dtype of content (without its fused kernel)"
    )
    schedules = (Geometric, Linear, Llama3, YaRN)
    layout = "cos_sin"
    linear = "multiplied"
    keeps = rotates = "content"

    def check(self, schedule: Schedule, pairing: Pairing | None = None) -> None:
        super().check(schedule, pairing)
        scaled = schedule.of if isinstance(schedule, Linear) else schedule
        fixed = isinstance(scaled, Llama3) and (
            (scaled.low, scaled.high, scaled.trained_length) != (1, 4, 8192)
        )
        if fixed or (isinstance(schedule, YaRN) and pairing == "interleaved"):
            raise ValueError(
                f"megatron has Llama 3's scaling with low=1, high=4, trained_length=8192, and "
                f"YaRN with half pairing, not {schedule!r}."
            )

    def has(self, schedule: Schedule) -> bool:
        """Positions may be scaled linearly beside Llama 3's scaling of frequencies."""
        if isinstance(schedule, Linear) and isinstance(schedule.of, Llama3):
            schedule = schedule.of
        return super().has(schedule)
