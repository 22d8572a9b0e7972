"""How far the frequencies of a place hold, where they depend on the length of sequences."""

from posenc.interop.configurations import Configuration
from posenc.interop.patching.admission import GROWING
from posenc.interop.rotary_config import RotaryLayer, layer_of

FAR = 2**20
"""Times the length that was stated: there every type that grows has grown."""


def reach_of(config: Configuration, layer: RotaryLayer, length: int | None) -> int | None:
    """The number of positions from which on a layer would have other frequencies; None: none.

    That is so for the rope types that transformers switches by the longest row it has seen, at the
    length for which they were resolved. A schedule that a caller gave holds everywhere.
    """
    longest = layer.rope.trained_length or layer.rope.longest
    if layer.rope.kind not in GROWING or longest is None:
        return None

    def at(n: int | None) -> str:
        return repr(layer_of(config, layer.layer_type, layer.rope, n).encoding)

    held = repr(layer.encoding)
    reach = max(length or 0, longest)
    return reach if at(length) == held != at(FAR * reach) else None
