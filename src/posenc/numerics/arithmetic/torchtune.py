"""torchtune: a cache of float32, and rotation in float32."""

from posenc.frequencies import Geometric, Llama3
from posenc.numerics.arithmetic.profile import Profile


class Torchtune(Profile):
    """``RotaryPositionalEmbeddings`` and ``Llama3ScaledRoPE``."""

    name = "torchtune"
    source = "torchtune/modules/position_embeddings.py"
    version = "torchtune 0.6.1"
    evidence = "run"
    said = (
        "frequencies, angles, cosines and the cache in float32; products and sums in float32, "
        "rounded once"
    )
    pairings = ("interleaved",)
    schedules = (Geometric, Llama3)
