"""What the weights beside a configuration say of it: widths and rows by their shapes, pairing and
sines by tables."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.encodings.expression import encoding_from
from posenc.encodings.tokens import Sinusoidal
from posenc.inspection.model import LayerNumbers, SetupNumbers
from posenc.inspection.rotary import grouped
from posenc.inspection.safetensors_header import PACKED, read_header, shards_of

SENSES = {"vision": "vision|visual|image", "audio": "audio|speech"}
"""What names of tensors say of the part that they are of."""

TABLES = r"(wpe|pos\w*emb\w*|embed_pos\w*)(\.weight)?$"
"""How tables of positions are named, those of tokens and those of patches."""

TELLING = re.compile(
    r"(?<![a-z])(position|pos(_|emb|enc)|rel_|relative|rotary|rope|alibi|wpe)|inv_freq|attention_bias"
)
"""What in the name of a tensor may tell of positions, whatever it is."""

NAMED, ROWS = 4, 64
"""How many names are told that tell of positions, and how many rows of sines are read."""

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class Stored:
    """One tensor in a file, not loaded.

    Attributes:
        path: The file.
        shape: Its shape.
        dtype: As the format names it.
        start: Where its bytes begin.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: str
    start: int

    @property
    def table(self) -> tuple[int, int]:
        """Its rows and their width, as of ``[1, rows, width]``."""
        return prod(self.shape[:-1]), self.shape[-1]

    def first_rows(self, count: int) -> Tensor | None:
        """The first rows, or all there are, in float64; None in a dtype that is not known here."""
        if self.dtype not in DTYPES or not self.shape:
            return None
        dtype = DTYPES[self.dtype]
        width = self.shape[-1]
        rows = min(count, prod(self.shape[:-1]))
        size = rows * width * dtype.itemsize
        with self.path.open("rb") as file:
            file.seek(self.start)
            data = bytearray(file.read(size))
        return torch.frombuffer(data, dtype=dtype).double().reshape(rows, width)


def header_beside(folder: Path) -> dict[str, Stored]:
    """The tensors of ``model.safetensors``, or of all shards of its index; empty without them.

    Raises:
        ValueError: A file is no safetensors file, or no index of such.
    """
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        found: dict[str, Stored] = {}
        for name in shards_of(index):
            if (folder / name).is_file():
                found |= header_of(folder / name)
        return found
    single = folder / "model.safetensors"
    return header_of(single) if single.is_file() else {}


def header_of(path: Path) -> dict[str, Stored]:
    """The tensors of one file, by its header alone.

    Raises:
        ValueError: It is no safetensors file, or a part of it is missing.
    """
    header = read_header(path)
    return {
        name: Stored(path, each.shape, each.dtype, header.start + each.begin)
        for name, each in header.entries.items()
    }


def confirmed(model: SetupNumbers, stored: Mapping[str, Stored]) -> list[str]:
    """What the shapes and tables say of a model, line by line."""
    lines = []
    for part in model.parts:
        own = _of_part(part.name, stored) if len(model.parts) > 1 else stored
        for places, layer in grouped(part.layers):
            lines += _of_layer(layer, places, own)
    found = list(dict.fromkeys(lines))
    return [f"Weights: {line}" for line in found or [_unheld(stored)]]


def _unheld(stored: Mapping[str, Stored]) -> str:
    """What to say where nothing was held against what was read: whose names speak of positions."""
    telling: dict[str, Stored] = {}
    for name, each in stored.items():
        if TELLING.search(name):  # of the layers once
            telling.setdefault(re.sub(r"\.\d+(?=\.)", ".*", name), each)
    if not telling:
        return "none of their names is known here to tell of positions."
    named = [f"{name} {list(each.shape)}" for name, each in list(telling.items())[:NAMED]]
    more = f", and {len(telling) - NAMED} more" if len(telling) > NAMED else ""
    return (
        f"nothing in them was held against what was read. These names tell of positions: "
        f"{', '.join(named)}{more}."
    )


def _of_part(name: str, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors of one part among several: text has those that no sense names."""
    senses = "|".join(SENSES.values())
    told = name.rpartition(".")[2]
    asked = re.compile(rf"(^|\.)[^.]*({senses if told == 'text' else SENSES.get(told, told)})")
    return {n: each for n, each in stored.items() if bool(asked.search(n)) != (told == "text")}


def _of_layer(
    layer: LayerNumbers, places: Sequence[int], stored: Mapping[str, Stored]
) -> list[str]:
    own = _of_stage(layer.layer_type, stored)
    lines = [
        HELD[name](text, own)
        for text in (*layer.tokens, *layer.scores)
        if (name := text.partition("(")[0]) in HELD
    ]
    if layer.rotary is not None:
        lines += [_heads(layer.rotary.head_dim, places, stored), *_frequencies(layer, stored)]
    return [line for line in lines if line]


def _of_stage(layer_type: str | None, stored: Mapping[str, Stored]) -> Mapping[str, Stored]:
    """The tensors of one stage, whose number is the first in their names; of no stages, all."""
    if layer_type is None or not layer_type.startswith("stage "):
        return stored
    own = re.compile(rf"\D*\.{layer_type.removeprefix('stage ')}\.")
    return {name: each for name, each in stored.items() if own.match(name)}


def _matching(pattern: str, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    return {name: each for name, each in stored.items() if re.search(pattern, name)}


def _tables(pattern: str, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    return {name: each for name, each in _matching(pattern, stored).items() if len(each.shape) > 1}


def _built(text: str) -> Any:
    """The encoding that an expression says, without memory for its parameters."""
    with torch.device("meta"):
        return encoding_from(text)


def _held(pattern: str, table: tuple[int, int], said: str, stored: Mapping[str, Stored]) -> str:
    """That there is a table as it was read; or what another one is, of the same width if any."""
    tables = _tables(pattern, stored)
    for name, each in tables.items():
        if each.table == table:
            return f"{name} has {said}, as the file says."
    if not tables:
        return ""
    name, each = _as_wide(table[1], tables)
    return f"{name} has shape {list(each.shape)}; the file says {list(table)}."


def _as_wide(width: int, tables: Mapping[str, Stored]) -> tuple[str, Stored]:
    """The first of this width, or of all."""
    return min(tables.items(), key=lambda item: item[1].table[1] != width)


def _rows(text: str, stored: Mapping[str, Stored]) -> str:
    learned = _built(text)
    rows, dim = learned.max_len + learned.offset, learned.dim
    return _held(TABLES, (rows, dim), f"{rows} rows of {dim}", stored)


def _patches(text: str, stored: Mapping[str, Stored]) -> str:
    grid = _built(text)
    rows, dim = prod(grid.size) + grid.prefix, grid.dim
    return _held(TABLES, (rows, dim), f"{rows} rows of {dim}", stored)


def _sines(text: str, stored: Mapping[str, Stored]) -> str:
    encoding = encoding_from(text)
    assert isinstance(encoding, Sinusoidal)
    if not (tables := _tables(TABLES, stored)):
        return ""
    name, each = _as_wide(encoding.dim, tables)
    if each.shape[-1] != encoding.dim:
        return f"{name} has shape {list(each.shape)}; the file says rows of {encoding.dim}."
    rows = each.first_rows(ROWS)
    if rows is None:
        return f"{name} has rows of {encoding.dim}, as the file says."
    exact = encoding.table(torch.arange(len(rows)) - encoding.offset, dtype=torch.float64)
    told = rows.any(1)  # the row of padding is zero
    rounding = 1e-4 + 2 * torch.finfo(DTYPES[each.dtype]).eps  # of angles, and of the table
    alike = told.any() and ((rows - exact)[told].abs() <= rounding).all()
    held = "the" if alike else "other numbers than the"
    return f"{name} holds {held} sines and cosines that were read."


def _buckets(text: str, stored: Mapping[str, Stored]) -> str:
    bias = _built(text)
    heads, buckets = bias.heads, bias.buckets
    said = f"{buckets} buckets of {heads} heads"
    return _held(r"relative_attention_bias\.weight$", (buckets, heads), said, stored)


def _displacements(text: str, stored: Mapping[str, Stored]) -> str:
    bias = _built(text)
    heads, (high, wide) = bias.heads, bias.window
    count = (2 * high - 1) * (2 * wide - 1)
    said = f"{count} displacements of {heads} heads"
    return _held(r"relative_position_bias_table$", (count, heads), said, stored)


def _distances(text: str, stored: Mapping[str, Stored]) -> str:
    found = _built(text)
    rows, dim = 2 * found.buckets, found.heads * found.head_dim
    return _held(r"rel_embeddings\.weight$", (rows, dim), f"{rows} rows of {dim}", stored)


HELD: Mapping[str, Callable[[str, Mapping[str, Stored]], str]] = {
    "Learned": _rows,
    "LearnedGrid": _patches,
    "Sinusoidal": _sines,
    "T5Bias": _buckets,
    "SwinBias": _displacements,
    "DeBERTa": _distances,
}
"""How tensors are held against an encoding; "" where there are none of its names."""


def _heads(head_dim: int, places: Sequence[int], stored: Mapping[str, Stored]) -> str | None:
    for pattern in (r"q_norm\.weight$", r"\bq_proj\.weight$"):
        for name, each in _matching(pattern, stored).items():
            number = re.search(r"\.(\d+)\.", name)
            if number and int(number[1]) not in places:
                continue
            if each.dtype in PACKED:
                return f"{name} is packed in {each.dtype}, so that its shape tells no width."
            width = each.shape[0]
            if width % head_dim:
                return f"{name} is {width} wide, no multiple of the head width {head_dim}."
            return f"{name} is {width} wide: {width // head_dim} × {head_dim}."
    return None


def _frequencies(layer: LayerNumbers, stored: Mapping[str, Stored]) -> list[str]:
    assert layer.rotary is not None
    lines = []
    for name, each in _matching(r"inv_freq$", stored).items():
        pairs = layer.rotary.pairs
        agrees = "as read" if each.shape == (pairs,) else f"{pairs} were read"
        lines.append(f"{name} holds {each.shape[-1]} frequencies, {agrees}; they tell no pairing.")
        break
    for name, each in _matching(r"(cos_cached|cos_cache|freqs_cos)$", stored).items():
        if (said := pairing_of(each)) is not None:
            agrees = "as read" if said == layer.rotary.pairing else f"{layer.rotary.pairing} read"
            lines.append(f"{name} repeats its columns as of {said} pairing ({agrees}).")
        break
    return lines


def pairing_of(stored: Stored) -> str | None:
    """The pairing by which a stored table of cosines repeats its columns; None where it does not.

    Cosines of pair i stand in columns i and i + width/2 for ``half``, 2i and 2i + 1 for
    ``interleaved``.
    """
    rows = stored.first_rows(4)
    if rows is None or rows.shape[0] < 2 or rows.shape[1] % 2:
        return None
    first, second = rows.chunk(2, dim=-1)
    if torch.equal(first, second):
        return "half"
    return "interleaved" if torch.equal(rows[:, ::2], rows[:, 1::2]) else None
