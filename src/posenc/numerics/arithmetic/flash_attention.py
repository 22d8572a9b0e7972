"""flash-attention: cosines cached in the dtype of content, and a Triton kernel in float32."""

from posenc.frequencies import Geometric
from posenc.numerics.arithmetic.profile import Profile


class FlashAttention(Profile):
    """``flash_attn.layers.rotary.RotaryEmbedding``, without the scale of xPos.

    Of float32 content its compiled kernel may fuse multiplication and addition.
    """

    name = "flash-attention"
    source = "flash_attn/layers/rotary.py and flash_attn/ops/triton/rotary.py"
    version = "flash-attn 2.8.3"
    evidence = "run"
    said = (
        "frequencies, angles and cosines in float32; the cache in the dtype of content, products "
        "and sums in float32, rounded once"
    )
    schedules = (Geometric,)
    keeps = "content"
