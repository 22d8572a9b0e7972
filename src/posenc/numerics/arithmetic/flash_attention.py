"""flash-attention: cosines cached in the dtype of content, and a Triton kernel in float32."""

from posenc.frequencies import Geometric
from posenc.numerics.arithmetic.profile import Profile


class FlashAttention(Profile):
    """``flash_attn.layers.rotary.RotaryEmbedding``, without the scale of xPos.

    Held to the bit against flash-attn 2.8.3 on 2026-11-22, its kernel by Triton's interpreter. Of
    float32 content a compiled kernel may fuse multiplication and addition; products of 16 bits are
    exact in float32, so that there it changes nothing.
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
