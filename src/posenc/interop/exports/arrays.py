"""Frequencies and tables as named arrays, for programs of any kind."""

import json
from dataclasses import dataclass
from decimal import localcontext
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.frequencies.schedule import PRECISION
from posenc.interop.configurations import Config
from posenc.interop.exports.subject import check_reach, depends_on_length, only_part, refuse
from posenc.interop.oracle.encodings import bare


@dataclass(frozen=True)
class Arrays:
    """Arrays by name, and what they are."""

    tensors: dict[str, Tensor]  #: see ``arrays``
    metadata: dict[str, str]  #: text by name; JSON where it is more than a word


def arrays(
    config: Config,
    *,
    longest: int | None = None,
    part: str | None = None,
    length: int | None = None,
) -> Arrays:
    """Inverse frequencies, tables and slopes of a model.

    Names start with the layer type (``full_attention``), or with ``layers`` where all layers are
    alike:

    =========================  ===================  ============================================
    name                       shape                what
    =========================  ===================  ============================================
    ``inverse_frequencies``    [pairs]              ω_i, float64, correctly rounded
    ``cos``, ``sin``           [longest, pairs]     at 0 … longest − 1, times the attention factor
    ``slopes``                 [heads]              of ALiBi, float64
    ``table``                  [longest, dim]       of a sinusoidal encoding
    =========================  ===================  ============================================

    Tables are float32, correctly rounded. The metadata hold the pairing, the rotated channels, the
    attention factor, the softmax scale, the layers, the expression, ``notes``, and each ω_i / 2π in
    units of 2^-192 as a hexadecimal number, which gives any position exactly.

    Args:
        config: As of ``positional_setup``.
        longest: Number of positions in tables; without it there are none.
        part: Which part of a model of several, as ``"text"``.
        length: Of the sequences, for schedules that depend on it.

    Example:
        >>> found = arrays({"model_type": "llama", "hidden_size": 16, "num_attention_heads": 4},
        ...                longest=2)
        >>> {name: tuple(tensor.shape) for name, tensor in found.tensors.items()}
        {'layers.inverse_frequencies': (2,), 'layers.cos': (2, 2), 'layers.sin': (2, 2)}
    """
    if longest is not None:
        check_reach(config, longest=longest, length=length)
    chosen = only_part(config, part=part, length=length)
    notes = list(chosen.notes)
    if depends_on_length(config):
        told = "short sequences" if length is None else f"sequences of {length} tokens"
        notes.append(f"frequencies depend on the length; these are of {told}")
    metadata = {"model_type": chosen.model_type, "posenc": "arrays 1"}
    metadata |= {"longest": str(longest)} if longest else {}
    metadata |= {"notes": json.dumps(notes)} if notes else {}
    tensors: dict[str, Tensor] = {}
    kinds: dict[tuple[str, float | None], list[int]] = {}
    for index, layer in enumerate(chosen.layers):
        kinds.setdefault((repr(layer.positional), layer.softmax_scale), []).append(index)
    for (expression, scale), indices in kinds.items():
        layer = chosen.layers[indices[0]]
        name = (layer.layer_type or "layers") if len(kinds) > 1 else "layers"
        alike = sum(key == name or key.startswith(f"{name}_") for key in metadata)
        name = f"{name}_{alike}" if alike else name
        said: dict[str, Any] = {"layers": indices, "expression": expression, "softmax_scale": scale}
        for entry in layer.encodings:
            found, about = _arrays(entry, longest)
            tensors |= {f"{name}.{key}": tensor for key, tensor in found.items()}
            said |= about
        metadata[name] = json.dumps(said)
    return Arrays(tensors, metadata)


def _arrays(entry: Any, longest: int | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The arrays of one encoding, and what is said of it."""
    if isinstance(entry, ALiBi):
        return {"slopes": torch.tensor(entry.slopes, dtype=torch.float64)}, {}
    if isinstance(entry, Sinusoidal):
        if longest is None:
            raise ValueError(f"{entry!r} is a table; pass its length as longest.")
        return {"table": entry.table(torch.arange(longest))}, {}
    if not isinstance(entry, Rotary | MultimodalRotary):
        refuse(f"it has {entry!r}")
    rotary = bare(entry)
    schedule, layout = rotary.frequencies, ("pairing", "rotated", "rotated_dim", "head_dim")
    about: dict[str, Any] = {name: getattr(rotary, name) for name in layout}
    about["attention_factor"] = schedule.attention_factor
    about["turns_in_units_of_2^-192"] = [f"{turns:x}" for turns in schedule.turns()]
    if isinstance(entry, MultimodalRotary):
        about |= {"sections": entry.sections, "arrangement": entry.arrangement}
        about["note"] = "cos and sin are those of tokens with equal coordinates"
    with localcontext(PRECISION):
        radians = [float(w) for w in schedule.radians()]
    found = {"inverse_frequencies": torch.tensor(radians, dtype=torch.float64)}
    if longest is not None:
        cos, sin = rotary.table(torch.arange(longest)).unbind(1)
        found |= {"cos": cos.contiguous(), "sin": sin.contiguous()}
    return found, about


def write_npz(found: Arrays, file: str | Path | IO[bytes]) -> None:
    """Write arrays as an .npz file; the array ``metadata`` holds the metadata as JSON.

    Example:
        >>> import io, numpy
        >>> file = io.BytesIO()
        >>> write_npz(arrays({"model_type": "gptj"}), file)
        >>> _ = file.seek(0)
        >>> json.loads(str(numpy.load(file)["metadata"]))["model_type"]
        'gptj'
    """
    import numpy

    given: dict[str, Any] = {name: tensor.numpy() for name, tensor in found.tensors.items()}
    numpy.savez(file, **given, metadata=numpy.array(json.dumps(found.metadata)))


def write_safetensors(found: Arrays, file: IO[bytes]) -> None:
    """Write arrays and their metadata to an open file, as .safetensors.

    Example:
        >>> import io
        >>> write_safetensors(arrays({"model_type": "gptj"}), io.BytesIO())
    """
    from safetensors.torch import save

    file.write(save(found.tensors, metadata=found.metadata))
