"""Generators of images and video: transformers that turn latent patches by frame, row and column.

Positions are ``[*batch, seq, 3]``, frame, row and column of a patch, unless said otherwise. Text
that is not rotated stands at 0 along every axis; text that is attended to across, as in Wan and
LTX-Video, has no positions.
"""

from fractions import Fraction

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.ltx import LTXRotary
from posenc.numerics.pairing import Pairing


def flux(head_dim: int = 128) -> Positional:
    """FLUX.1: 16, 56 and 56 channels for 0, row and column of a patch, base 10000.

    Reference: ``FluxPosEmbed`` of diffusers; black-forest-labs/flux,
    ``src/flux/modules/layers.py``.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="flux"))


def flux2(head_dim: int = 128) -> Positional:
    """FLUX.2: 32 channels for each of four axes, base 2000.

    Positions are ``[*batch, seq, 4]``: which image (0, then 10, 20, … for references), row, column,
    and for text (0, 0, 0, place in the text).

    Reference: ``Flux2PosEmbed`` and ``Flux2Pipeline`` of diffusers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="flux2"))


def qwen_image(head_dim: int = 128) -> Positional:
    """Qwen-Image: 16, 56 and 56 channels for frame, row and column, base 10000.

    Rows and columns are counted from the middle of the image,
    ``posenc.positions.grid(1, h, w)`` less (0, h − h // 2, w − w // 2); word i of the text stands
    at m + i along all axes, where m is ``max(h, w) // 2``.

    Reference: Wu et al. 2025, "Qwen-Image Technical Report", section 2.4 (arXiv:2508.02324);
    ``QwenEmbedRope`` of diffusers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="qwen_image"))


def wan(head_dim: int = 128) -> Positional:
    """Wan 2.1 and 2.2: 2⌊d/6⌋ channels for row and for column, the rest for the frame.

    Reference: Wan team 2025, "Wan" (arXiv:2503.20314); ``WanRotaryPosEmbed`` of diffusers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="wan"))


def hunyuan_video(head_dim: int = 128) -> Positional:
    """HunyuanVideo: 16, 56 and 56 channels for frame, row and column, base 256.

    Reference: Kong et al. 2024, "HunyuanVideo", section 4.2 (arXiv:2412.03603);
    ``HunyuanVideoRotaryPosEmbed`` of diffusers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="hunyuan_video"))


def cogvideox(head_dim: int = 64) -> Positional:
    """CogVideoX 5B: a quarter of a head for the frame, 3/8 for row and for column.

    Grids other than 30 × 45 patches are resized into these, but in 1.5: n rows that cover those
    from a to b stand at a, a + s, a + 2s, … with s = b / n − a / (n − 1), as
    ``posenc.positions.Coordinates``; columns likewise.

    Reference: Yang et al. 2024, "CogVideoX", section 2.2 (arXiv:2408.06072);
    ``get_3d_rotary_pos_embed`` of diffusers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="cogvideox"))


def ltx2(head_dim: int = 128, heads: int = 32, *, pairing: Pairing = "half") -> Positional:
    """LTX-2's video: frequencies over all heads, of seconds and pixels at the middle of a patch.

    Positions are ``posenc.positions.Coordinates`` from 0 to 20 seconds and 2048 pixels; latent
    frame i covers the frames max(0, 8i − 7) … 8i of the video.

    Args:
        pairing: ``"half"`` for ``rope_type="split"``, ``"interleaved"`` for the other.

    Reference: HaCohen et al. 2026, "LTX-2" (arXiv:2601.03233); ``LTX2AudioVideoRotaryPosEmbed`` of
    diffusers.
    """
    return Positional(queries_keys=LTXRotary(head_dim, heads, (20, 2048, 2048), pairing=pairing))


def ltx2_audio(head_dim: int = 64, heads: int = 32, *, pairing: Pairing = "half") -> Positional:
    """LTX-2's sound, and its attention between sound and video: the same, of seconds alone.

    Positions are ``[*batch, seq, 1]``, ``Coordinates`` from 0 to 20 seconds: the middle of what a
    latent frame covers, the steps max(0, 4i − 3) … 4i of 10 milliseconds. Between the two, a
    video's tokens have the seconds of their frame.

    Reference: As of ``ltx2``, with ``modality="audio"``.
    """
    return Positional(queries_keys=LTXRotary(head_dim, heads, (20,), pairing=pairing))


def ltx_video(head_dim: int = 64, heads: int = 32, *, frame_rate: int = 25) -> Positional:
    """LTX-Video: frequencies over all heads, coordinates between −1 and 1.

    A latent frame is of 8 frames, a patch of 32 pixels; 20 seconds are from −1 to 1.

    Reference: HaCohen et al. 2024, "LTX-Video", section 2.3 (arXiv:2501.00103);
    ``LTXVideoRotaryPosEmbed`` of diffusers.
    """
    sizes = (Fraction(20 * frame_rate, 8), 64, 64)
    return Positional(queries_keys=LTXRotary(head_dim, heads, sizes))


def minimax_h3(head_dim: int = 128) -> Positional:
    """MiniMax-H3: 32 channels each for time, row and column; the rest of a head is not rotated.

    Text goes along time, (i, 0, 0); sound goes on behind it,
    and so do latent frames, 5/3 and 20/3 apart, with rows and columns from 0 to 32 over a square
    image. So positions are ``posenc.positions.Coordinates``, in which a third is a third.

    Reference: ``MiniMaxH3RotaryPosEmbed`` of diffusers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="minimax_h3"))
