"""What the weights beside a configuration say of it: widths by their shapes, pairing by tables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from posenc.inspection.model import LayerNumbers, SetupNumbers
from posenc.inspection.rotary import grouped
from posenc.inspection.safetensors_header import PACKED, read_header, shards_of

SENSES = {"vision": "vision|visual|image", "audio": "audio|speech"}
"""What names of tensors say of the part that they are of."""

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
    return [f"Weights: {line}" for line in found] or [
        "Weights: none of their names is known here to tell of positions."
    ]


def _of_part(name: str, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors of one part among several: text has those that no sense names."""
    senses = "|".join(SENSES.values())
    told = name.rpartition(".")[2]
    asked = re.compile(rf"(^|\.)[^.]*({senses if told == 'text' else SENSES.get(told, told)})")
    return {n: each for n, each in stored.items() if bool(asked.search(n)) != (told == "text")}


def _of_layer(
    layer: LayerNumbers, places: Sequence[int], stored: Mapping[str, Stored]
) -> list[str]:
    lines = [_rows(text, stored) for text in layer.tokens if text.startswith("Learned(")]
    lines += [_buckets(text, stored) for text in layer.scores if text.startswith("T5Bias(")]
    if layer.rotary is not None:
        lines += [_heads(layer.rotary.head_dim, places, stored), *_frequencies(layer, stored)]
    return [line for line in lines if line]


def _matching(pattern: str, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    return {name: each for name, each in stored.items() if re.search(pattern, name)}


def _rows(text: str, stored: Mapping[str, Stored]) -> str | None:
    dim, length = (int(n) for n in re.findall(r"\d+", text)[:2])
    offset = re.search(r"offset=(\d+)", text)
    rows = length + (int(offset.group(1)) if offset else 0)
    tables = _matching(r"(wpe|pos\w*emb\w*|embed_pos\w*)\.weight$", stored)
    for name, each in tables.items():
        if each.shape == (rows, dim):
            return f"{name} has {rows} rows of {dim}, as the file says."
    if tables:
        name, each = next(iter(tables.items()))
        return f"{name} has shape {list(each.shape)}; the file says [{rows}, {dim}]."
    return None


def _buckets(text: str, stored: Mapping[str, Stored]) -> str | None:
    heads, buckets = (int(n) for n in re.findall(r"=(\d+)", text)[:2])
    for name, each in _matching(r"relative_attention_bias\.weight$", stored).items():
        agrees = "as the file says" if each.shape == (buckets, heads) else "not as the file says"
        return f"{name} has {each.shape[0]} buckets of {each.shape[-1]} heads, {agrees}."
    return None


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
