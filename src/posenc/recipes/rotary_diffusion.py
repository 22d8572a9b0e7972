"""Generators of images and video: transformers that turn latent patches by frame, row and column.

Text beside the patches is said with each; a text that is not rotated stands at 0 along every axis.
"""

from fractions import Fraction

from posenc.arguments import check_whole
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.ltx import LTXRotary
from posenc.numerics.pairing import Pairing


def flux(head_dim: int = 128) -> Positional:
    """FLUX.1: 16, 56 and 56 channels for three axes, base 10000.

    Positions are ``[*batch, seq, 3]``: 0, row and column of a patch; (0, 0, 0) for all text.

    Reference:
        ``FluxPosEmbed`` of diffusers; black-forest-labs/flux, ``src/flux/modules/layers.py``.

    Example:
        >>> flux().queries_keys[0].split
        (16, 56, 56)
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="flux"))


def flux2(head_dim: int = 128) -> Positional:
    """FLUX.2: 32 channels for each of four axes, base 2000.

    Positions are ``[*batch, seq, 4]``: which image (0, then 10, 20, … for references), row, column,
    and for text (0, 0, 0, place in the text).

    Reference:
        ``Flux2PosEmbed`` and ``Flux2Pipeline`` of diffusers.

    Example:
        >>> flux2().queries_keys[0]
        AxialRotary(128, base=2000.0, form='flux2')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="flux2"))


def qwen_image(head_dim: int = 128) -> Positional:
    """Qwen-Image: 16, 56 and 56 channels for frame, row and column, base 10000.

    Positions are ``[*batch, seq, 3]``. Rows and columns are counted from the middle of the image,
    ``posenc.positions.grid(1, h, w)`` less (0, h − h // 2, w − w // 2); word i of the text stands
    at m + i along all axes, where m is ``max(h, w) // 2``.

    Reference:
        Wu et al. 2025, "Qwen-Image Technical Report", section 2.4 (arXiv:2508.02324);
        ``QwenEmbedRope`` of diffusers.

    Example:
        >>> qwen_image().queries_keys[0]
        AxialRotary(128, base=10000.0, form='qwen_image')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="qwen_image"))


def wan(head_dim: int = 128) -> Positional:
    """Wan 2.1 and 2.2: 2⌊d/6⌋ channels for row and for column, the rest for the frame.

    Positions are ``[*batch, seq, 3]``: frame, row and column of a patch. Text is attended to across
    and has no positions.

    Reference:
        Wan team 2025, "Wan" (arXiv:2503.20314); ``WanRotaryPosEmbed`` of diffusers.

    Example:
        >>> wan().queries_keys[0].split
        (44, 42, 42)
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="wan"))


def hunyuan_video(head_dim: int = 128) -> Positional:
    """HunyuanVideo: 16, 56 and 56 channels for frame, row and column, base 256.

    Positions are ``[*batch, seq, 3]``. Text is not rotated.

    Reference:
        Kong et al. 2024, "HunyuanVideo", section 4.2 (arXiv:2412.03603);
        ``HunyuanVideoRotaryPosEmbed`` of diffusers.

    Example:
        >>> hunyuan_video().queries_keys[0]
        AxialRotary(128, base=256.0, form='hunyuan_video')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="hunyuan_video"))


def cogvideox(head_dim: int = 64) -> Positional:
    """CogVideoX 5B: a quarter of a head for the frame, 3/8 for row and for column.

    Positions are ``[*batch, seq, 3]``: frame, row and column of a patch, in 1.5 and for 30 × 45
    patches. Other sizes are resized into these: n rows that cover those from a to b stand at
    a, a + s, a + 2s, … with s = b / n − a / (n − 1), so they are ``posenc.positions.Coordinates``;
    columns likewise. Text is not rotated.

    Reference:
        Yang et al. 2024, "CogVideoX", section 2.2 (arXiv:2408.06072);
        ``get_3d_rotary_pos_embed`` of diffusers.

    Example:
        >>> cogvideox().queries_keys[0].split
        (16, 24, 24)
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="cogvideox"))


def ltx2(head_dim: int = 128, heads: int = 32, *, pairing: Pairing = "half") -> Positional:
    """LTX-2's video: frequencies over all heads, of seconds and pixels at the middle of a patch.

    Positions are ``[*batch, seq, 3]``, ``posenc.positions.Coordinates`` from 0 to 20 seconds and
    2048 pixels. Latent frame i covers the frames max(0, 8i − 7) … 8i of the video.

    Args:
        head_dim: Width of a head.
        heads: Number of heads.
        pairing: ``"half"`` for ``rope_type="split"``, ``"interleaved"`` for the other.

    Reference:
        HaCohen et al. 2026, "LTX-2" (arXiv:2601.03233); ``LTX2AudioVideoRotaryPosEmbed`` of
        diffusers.

    Example:
        >>> ltx2().queries_keys[0]
        LTXRotary(128, heads=32, sizes=(20, 2048, 2048), base=10000.0, pairing='half')
    """
    return Positional(queries_keys=LTXRotary(head_dim, heads, (20, 2048, 2048), pairing=pairing))


def ltx2_audio(head_dim: int = 64, heads: int = 32, *, pairing: Pairing = "half") -> Positional:
    """LTX-2's sound, and its attention between sound and video: the same, of seconds alone.

    Positions are ``[*batch, seq, 1]``, ``Coordinates`` from 0 to 20 seconds: the middle of what a
    latent frame covers, the steps max(0, 4i − 3) … 4i of 10 milliseconds. Between the two, a
    video's tokens have the seconds of their frame.

    Args:
        head_dim: Width of a head.
        heads: Number of heads.
        pairing: As of ``ltx2``.

    Reference:
        As of ``ltx2``, with ``modality="audio"``.

    Example:
        >>> ltx2_audio().queries_keys[0]
        LTXRotary(64, heads=32, sizes=(20,), base=10000.0, pairing='half')
    """
    return Positional(queries_keys=LTXRotary(head_dim, heads, (20,), pairing=pairing))


def ltx_video(head_dim: int = 64, heads: int = 32, *, frame_rate: int = 25) -> Positional:
    """LTX-Video: frequencies over all heads, coordinates between −1 and 1.

    Positions are ``[*batch, seq, 3]``: latent frame of 8 frames, row and column of a patch of 32
    pixels. Text is attended to across and has no positions.

    Args:
        head_dim: Width of a head.
        heads: Number of heads.
        frame_rate: Frames a second; 20 seconds are from −1 to 1.

    Raises:
        ValueError: A size or rate is no whole number from 1 on.

    Reference:
        HaCohen et al. 2024, "LTX-Video", section 2.3 (arXiv:2501.00103);
        ``LTXVideoRotaryPosEmbed`` of diffusers.

    Example:
        >>> ltx_video().queries_keys[0]
        LTXRotary(64, heads=32, sizes=(125/2, 64, 64), base=10000.0)
    """
    check_whole(frame_rate=frame_rate)
    sizes = (Fraction(20 * frame_rate, 8), 64, 64)
    return Positional(queries_keys=LTXRotary(head_dim, heads, sizes))


def minimax_h3(head_dim: int = 128) -> Positional:
    """MiniMax-H3: 32 channels each for time, row and column; the rest of a head is not rotated.

    Positions are ``[*batch, seq, 3]``. Text goes along time, (i, 0, 0); sound goes on behind it,
    and so do latent frames, 5/3 and 20/3 apart, with rows and columns from 0 to 32 over a square
    image. So they are ``posenc.positions.Coordinates``, in which a third is a third.

    Reference:
        ``MiniMaxH3RotaryPosEmbed`` of diffusers.

    Example:
        >>> minimax_h3().queries_keys[0]
        AxialRotary(128, base=10000.0, form='minimax_h3')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="minimax_h3"))
