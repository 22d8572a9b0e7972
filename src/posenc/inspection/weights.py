"""Checks a configuration against the weights beside it: widths, rows, sines and pairing."""

import re
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from posenc.encodings.expression import encoding_from
from posenc.encodings.tokens import Sinusoidal
from posenc.inspection.model import LayerNumbers, SetupNumbers
from posenc.inspection.rotary import RotaryNumbers, grouped
from posenc.inspection.safetensors_header import PACKED, read_header, shards_of

SENSES = {"vision": "vision|visual|image", "audio": "audio|speech"}
"""What names of tensors say of the part that they are of."""

TABLES = r"(wpe|pos\w*emb\w*|embed_pos\w*)(\.weight)?$"
"""How tables of positions are named, those of tokens and those of patches."""

TELLING = (
    r"(?<![a-z])(position|pos(_|emb|enc)|rel_|relative|rotary|rope|alibi|wpe)"
    r"|inv_freq|attention_bias"
)
"""What in the name of a tensor may tell of positions, whatever it is."""

NAMED, ROWS = 4, 64
"""How many names are told that tell of positions, and how many rows of sines are read."""


class Stored(NamedTuple):
    """One tensor in a file, not loaded; its dtype is as the format names it."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def table(self) -> tuple[int, int]:
        """Its rows and their width, as of ``[1, rows, width]``."""
        return prod(self.shape[:-1]), self.shape[-1]

    def first_rows(self, count: int) -> Tensor:
        """The first rows, or all there are."""
        with safe_open(self.path, "pt") as file:
            return file.get_tensor(self.name).reshape(-1, self.shape[-1])[:count]


def header_beside(folder: Path) -> list[Stored]:
    """The tensors of ``model.safetensors``, or of all shards of its index; empty without them."""
    index = folder / "model.safetensors.index.json"
    names = shards_of(index) if index.is_file() else ["model.safetensors"]
    files = [folder / name for name in names if (folder / name).is_file()]
    return [each for file in files for each in header_of(file)]


def header_of(path: Path) -> list[Stored]:
    """The tensors of one file, by its header alone."""
    entries = read_header(path).entries
    return [Stored(path, name, each.shape, each.dtype) for name, each in entries.items()]


def confirmed(model: SetupNumbers, stored: Sequence[Stored]) -> list[str]:
    """What the shapes and tables say of a model, line by line."""
    found = []
    for part in model.parts:
        own = _of_part(part.name, stored) if len(model.parts) > 1 else stored
        for places, layer in grouped(part.layers):
            found += _of_layer(layer, places, own)
    if not found:
        telling = {  # one line for all layers
            re.sub(r"\.\d+(?=\.)", ".*", each.name): list(each.shape)
            for each in _matching(TELLING, stored)
        }
        named = ", ".join(f"{name} {shape}" for name, shape in [*telling.items()][:NAMED]) or "none"
        found = [f"nothing to compare with the file. Names that mention positions: {named}."]
    return [f"Weights: {line}" for line in dict.fromkeys(found)]


def _matching(pattern: str, stored: Sequence[Stored]) -> list[Stored]:
    return [each for each in stored if re.search(pattern, each.name)]


def _of_part(name: str, stored: Sequence[Stored]) -> list[Stored]:
    """The tensors of one part among several: text has those that no sense names."""
    told = name.rpartition(".")[2]
    if told == "text":
        others = {*_matching(rf"(^|\.)[^.]*({'|'.join(SENSES.values())})", stored)}
        return [each for each in stored if each not in others]
    return _matching(rf"(^|\.)[^.]*({SENSES.get(told, told)})", stored)


def _of_layer(
    layer: LayerNumbers, places: Sequence[int], stored: Sequence[Stored]
) -> Iterator[str]:
    if layer.layer_type and layer.layer_type.startswith("stage "):  # the first number of a name
        stage = layer.layer_type.removeprefix("stage ")
        stored = _matching(rf"^\D*\.{stage}\.", stored)
    for text in (*layer.tokens, *layer.scores):
        yield from _held(text, stored)
    if layer.rotary is not None:
        yield from _heads(layer.rotary.head_dim, places, stored)
        yield from _rotated(layer.rotary, stored)


HELD = {
    **dict.fromkeys(("Learned", "Sinusoidal", "LearnedGrid"), (TABLES, "{} rows of {}")),
    "T5Bias": (r"relative_attention_bias\.weight$", "{} buckets of {} heads"),
    "SwinBias": (r"relative_position_bias_table$", "{} displacements of {} heads"),
    "DeBERTa": (r"rel_embeddings\.weight$", "{} rows of {}"),
}
"""By encoding: how its table is named, and what that has in words."""


def _held(text: str, stored: Sequence[Stored]) -> Iterator[str]:
    """Compares the table of an encoding with it."""
    pattern, words = HELD.get(text.partition("(")[0], ("$.", ""))
    tables = [each for each in _matching(pattern, stored) if len(each.shape) > 1]
    if not tables:
        return
    with torch.device("meta"):  # without memory for parameters
        encoding: Any = encoding_from(text)
    if isinstance(encoding, Sinusoidal):
        table = 0, encoding.dim
    else:  # DeBERTa's is split among heads
        weight = next(encoding.parameters())
        table = weight.shape[-2], weight.numel() // weight.shape[-2]
    # As it was read, or as wide, if any is.
    each = min(tables, key=lambda x: (x.table != table, x.table[1] != table[1]))
    if isinstance(encoding, Sinusoidal) and each.table[1] == encoding.dim:
        yield f"{each.name} holds {_sines(each, encoding)} expected sines and cosines."
    elif each.table == table:
        yield f"{each.name} has {words.format(*table)}, as the file says."
    else:
        said = f"rows of {table[1]}" if isinstance(encoding, Sinusoidal) else list(table)
        yield f"{each.name} has shape {list(each.shape)}; the file says {said}."


def _sines(each: Stored, encoding: Sinusoidal) -> str:
    rows = each.first_rows(ROWS)
    exact = encoding.table(torch.arange(len(rows)) - encoding.offset, dtype=torch.float64)
    told = rows.any(1)  # the row of padding is zero
    rounding = 1e-4 + 2 * torch.finfo(rows.dtype).eps  # of angles, and of the table
    alike = told.any() and ((rows - exact)[told].abs() <= rounding).all()
    return "the" if alike else "other numbers than the"


def _heads(head_dim: int, places: Sequence[int], stored: Sequence[Stored]) -> Iterator[str]:
    """What a projection or norm of queries in one of these layers says of the width of a head."""
    for each in _matching(r"q_norm\.weight$", stored) + _matching(r"\bq_proj\.weight$", stored):
        number, width = re.search(r"\.(\d+)\.", each.name), each.shape[0]
        if number and int(number[1]) not in places:
            continue
        if each.dtype in PACKED:
            yield f"{each.name} is packed in {each.dtype}: its shape does not give the width."
        elif width % head_dim:
            yield f"{each.name} is {width} wide, no multiple of the head width {head_dim}."
        else:
            yield f"{each.name} is {width} wide: {width // head_dim} × {head_dim}."
        return


def _rotated(rotary: RotaryNumbers, stored: Sequence[Stored]) -> Iterator[str]:
    """The number of stored frequencies, and how a stored table of cosines repeats its columns."""
    for each in _matching(r"inv_freq$", stored)[:1]:
        agrees = "as expected" if each.shape == (rotary.pairs,) else f"expected {rotary.pairs}"
        yield f"{each.name} holds {each.shape[-1]} frequencies, {agrees}."
    for each in _matching(r"(cos_cached|cos_cache|freqs_cos)$", stored)[:1]:
        rows = each.first_rows(4)
        halves = torch.equal(*rows.tensor_split(2, dim=-1))
        if halves or torch.equal(rows[:, ::2], rows[:, 1::2]):
            pairing = "half" if halves else "interleaved"
            agrees = "as expected" if pairing == rotary.pairing else f"expected {rotary.pairing}"
            yield f"{each.name} repeats its columns as {pairing} pairing does ({agrees})."
