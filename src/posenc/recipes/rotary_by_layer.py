"""Language models whose layers differ: each recipe gives one ``Positional`` a layer.

``Encoder(dim, heads, depth, positional=gemma3(depth=depth))`` takes them as they are. Layers of one
kind share one encoding, so its table is built once.
"""

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.frequencies import Geometric, Linear, Llama3


def gemma3(
    head_dim: int = 256, depth: int = 34, *, factor: float | None = 8.0
) -> tuple[Positional, ...]:
    """Gemma 3 4B: five local layers of base 10000, then a global one of base 10^6 by 8.

    Args:
        head_dim: 256; 128 in the 27B model.
        depth: 34; 26 in the 1B model, 48 in 12B, 62 in 27B.
        factor: What the global frequencies are divided by: 8, but None in the 1B model.

    Reference: Gemma Team 2025, section 2 (arXiv:2503.19786).
    """
    far = Geometric(head_dim, 1e6)
    near_layer = Positional(queries_keys=Rotary(Geometric(head_dim)))
    far_layer = Positional(queries_keys=Rotary(far if factor is None else Linear(far, factor)))
    return tuple(near_layer if (layer + 1) % 6 else far_layer for layer in range(depth))


def modernbert(head_dim: int = 64, depth: int = 22) -> tuple[Positional, ...]:
    """ModernBERT base: a global layer of base 160000, then two local ones of base 10000.

    Args:
        depth: 22; 28 in the large model.

    Reference: Warner et al. 2024, section 2.1 (arXiv:2412.13663).
    """
    near = Positional(queries_keys=Rotary(Geometric(head_dim)))
    far = Positional(queries_keys=Rotary(Geometric(head_dim, 160_000.0)))
    return tuple(near if layer % 3 else far for layer in range(depth))


def smollm3(head_dim: int = 128, depth: int = 36, *, base: float = 5e6) -> tuple[Positional, ...]:
    """SmolLM3-3B: base 5·10^6, and every fourth layer without any encoding (NoPE).

    Args:
        base: 5·10^6 in the published models; 2·10^6 where a configuration leaves it out.

    Reference: Bakouch et al. 2025, "SmolLM3"; Yang et al. 2025, "RoPE to NoPE and Back Again"
    (arXiv:2501.18795).
    """
    rotary, without = Positional(queries_keys=Rotary(Geometric(head_dim, base))), Positional()
    return tuple(rotary if (layer + 1) % 4 else without for layer in range(depth))


def llama4(
    head_dim: int = 128, depth: int = 48, *, factor: float | None = 16.0
) -> tuple[Positional, ...]:
    """Llama 4 Scout (17B, 16 experts): neighbors in pairs; every fourth layer has no rotation.

    Those layers see the whole context, and their queries grow with the position
    (``QueryTemperature``); the others look at pieces of 8192 tokens. Frequencies that turn less
    than once in 8192 tokens are divided by 16, without a smooth middle.

    Args:
        factor: 16 in Scout, None in Maverick.

    Reference: Meta 2025, the configuration and code of Llama 4.
    """
    plain = Geometric(head_dim, 500_000.0)
    scaled = plain if factor is None else Llama3(plain, factor, low=1.0, high=1.0)
    rotary = Positional(queries_keys=Rotary(scaled, pairing="interleaved"))
    without = Positional(queries_keys=QueryTemperature(head_dim))
    return tuple(rotary if (layer + 1) % 4 else without for layer in range(depth))
