"""One exact table in the form in which each engine keeps its own, to be loaded on all sides.

Two engines that load the same table multiply with the same bits, however each would have computed
it. Only how they round products is left to them: none, where they rotate in float32.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from posenc.arguments import check_choice, check_whole
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.positions import consecutive

Form = Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"]


def engine_table(
    rotary: Rotary, length: int, form: Form, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """cos and sin at positions 0 … length − 1, correctly rounded, with the attention factor.

    Args:
        rotary: Frequencies, pairing and arithmetic.
        length: Number of positions.
        form: How they are kept:

            - ``cos_sin_cache``: vLLM and SGLang, ``[length, 2 · pairs]``: cosines, then sines.
            - ``cos_sin``: transformers, ``cos`` and ``sin`` ``[length, rotated_dim]``, a number
              for each channel.
            - ``complex``: torchtitan and Llama 4, ``freqs_cis`` ``[length, pairs]`` complex64.
            - ``halves``: flash-attention, ``cos`` and ``sin`` ``[length, pairs]``.
            - ``pairs``: torchtune, ``cache`` ``[length, pairs, 2]``.
        dtype: Of the values; complex ones are float32.

    Example:
        >>> made = engine_table(Rotary(8), 16, "cos_sin_cache")
        >>> made["cos_sin_cache"].shape
        torch.Size([16, 8])
    """
    check_choice(get_args(Form), form=form)
    check_whole(length=length)
    if form == "complex" and dtype != torch.float32:
        raise ValueError(f"dtype is {dtype}; complex tables are of float32. Leave dtype out.")
    table = rotary.table(consecutive(length), dtype=dtype)
    cos, sin = (part.contiguous() for part in table.unbind(-2))
    if form == "cos_sin_cache":
        return {"cos_sin_cache": torch.cat((cos, sin), dim=-1)}
    if form == "complex":
        return {"freqs_cis": torch.complex(cos, sin)}
    if form == "pairs":
        return {"cache": torch.stack((cos, sin), dim=-1)}
    if form == "cos_sin" and rotary.pairing == "interleaved":
        cos, sin = (part.repeat_interleave(2, dim=-1) for part in (cos, sin))
    elif form == "cos_sin":
        cos, sin = (torch.cat((part, part), dim=-1) for part in (cos, sin))
    return {"cos": cos, "sin": sin}
