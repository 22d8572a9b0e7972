"""Encodings and whole encoders as ONNX programs, with exact tables to a stated longest position."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.arguments import check_choice
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.interop.modes import in_evaluation
from posenc.transformer import Encoder
from posenc.transformer.tables import Rotations

if TYPE_CHECKING:
    from torch.onnx import ONNXProgram

Operator = Literal["basic", "RotaryEmbedding"]

Inputs = dict[str, tuple[Tensor, dict[int, str]]]
"""Examples and the names of their dynamic axes, by input."""


def onnx_program(
    module: Rotary | Sinusoidal | ALiBi | Encoder,
    *,
    longest: int,
    operator: Operator = "basic",
    heads: tuple[int, int] | None = None,
) -> "ONNXProgram":
    """An ONNX program of an encoding, or of a whole encoder; ``.save(path)`` writes it.

    Tables are correctly rounded and stored for positions 0 … longest − 1. At any other position,
    onnxruntime's CPU provider raises an error; a provider that does not check indices gives NaN.

    Inputs and outputs, with any batch and any number of tokens:

    - ``Rotary``: q, k ``[batch, heads, seq, head_dim]`` and positions ``[batch, seq]`` to
      q_encoded, k_encoded
    - ``Sinusoidal`` and ``Encoder``: x ``[batch, seq, dim]`` and positions to encoded
    - ``ALiBi``: q_positions ``[batch, q_len]`` and k_positions ``[batch, k_len]`` to bias
      ``[batch, heads, q_len, k_len]``

    Args:
        module: What to export, in evaluation mode.
        longest: Number of positions in the tables.
        operator: ``"RotaryEmbedding"`` uses the operator of opset 23, where the first channels of a
            head rotate; ``"basic"`` is made of older ones. For ``Rotary`` alone.
        heads: Numbers of query and of key heads, by default (2, 1); for ``Rotary`` alone.

    Reference:
        onnx.ai/onnx/operators/onnx__RotaryEmbedding.html.

    Example:
        >>> program = onnx_program(Sinusoidal(16), longest=64)  # doctest: +SKIP
        >>> [value.name for value in program.model.graph.inputs]  # doctest: +SKIP
        ['x', 'positions']
    """
    check_choice(get_args(Operator), operator=operator)
    if find_spec("onnx") is None or find_spec("onnxscript") is None:
        raise ImportError("ONNX programs need onnx and onnxscript. Install posenc[onnx].")
    told = repr(module)
    if isinstance(module, Rotary):
        program, inputs = _rotary(module, longest, operator, heads or (2, 1))
    elif isinstance(module, ALiBi):
        program = StoredProfile(module, longest)
        inputs = {"q_positions": _positions("q_len"), "k_positions": _positions("k_len", 4)}
    elif isinstance(module, Sinusoidal | Encoder):
        kind: Any = _TokenProgram if isinstance(module, Sinusoidal) else _EncoderProgram
        program = kind(module, longest)
        x = (torch.zeros(2, 3, module.dim), {0: "batch", 1: "seq"})
        inputs = {"x": x, "positions": _positions("seq")}
    else:
        raise TypeError(f"module is a {type(module).__name__}; it cannot be exported.")
    if isinstance(module, Encoder):
        told = f"Encoder({module.dim}, {module.heads}, {module.depth}), {module.positional!r}"
    with torch.no_grad(), _quiet(), in_evaluation(program):
        exported = torch.onnx.export(
            program,
            tuple(tensor for tensor, _ in inputs.values()),
            input_names=list(inputs),
            output_names=program.outputs,
            dynamic_shapes=tuple(axes for _, axes in inputs.values()),
            opset_version=18 if operator == "basic" else 23,  # the first with the operator
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    exported.model.metadata_props["posenc.longest"] = str(longest)
    exported.model.metadata_props["posenc.module"] = told
    return exported


def _rotary(
    module: Rotary, longest: int, operator: Operator, heads: tuple[int, int]
) -> tuple["_RotaryProgram", Inputs]:
    if not module.heads_first:
        raise ValueError("heads_first is False; the program takes [batch, heads, seq, head_dim].")
    if operator == "RotaryEmbedding" and module.rotated == "suffix":
        raise ValueError("RotaryEmbedding rotates the first channels, and this encoding the last.")
    program = (_RotaryProgram if operator == "basic" else _OperatorProgram)(module, longest)
    q, k = ((torch.zeros(2, n, 3, module.head_dim), {0: "batch", 2: "seq"}) for n in heads)
    return program, {"q": q, "k": k, "positions": _positions("seq")}


def _positions(name: str, length: int = 3) -> tuple[Tensor, dict[int, str]]:
    return torch.arange(length).expand(2, length).contiguous(), {0: "batch", 1: name}


class Allowed(nn.Module):
    """Positions as they are, where they are 0 … longest − 1."""

    allowed: Tensor

    def __init__(self, longest: int):
        super().__init__()
        self.longest = longest
        self.register_buffer("allowed", torch.arange(longest))

    def forward(self, positions: Tensor) -> Tensor:
        # Gathering counts negative indices from the end, in torch and in ONNX alike.
        return self.allowed[torch.where(positions < 0, self.longest, positions)]

    def good(self, positions: Tensor) -> Tensor:
        """Where they are: for providers that do not check indices."""
        return (positions >= 0) & (positions < self.longest)


class StoredRows(nn.Module):
    """A table of rows 0 … longest − 1, gathered by position."""

    rows: Tensor

    def __init__(self, encoding: Rotary | Sinusoidal, longest: int):
        super().__init__()
        self.check = Allowed(longest)
        self.register_buffer("rows", encoding.table(torch.arange(longest)).detach().clone())

    def forward(self, positions: Tensor) -> Tensor:
        rows, good = self.rows[self.check(positions)], self.check.good(positions)
        good = good.view(*positions.shape, *(1,) * (rows.ndim - positions.ndim))
        return torch.where(good, rows, torch.nan)


class StoredProfile(nn.Module):
    """A relative bias at distances −(longest − 1) … longest − 1, gathered by distance."""

    profile: Tensor
    outputs = ("bias",)

    def __init__(self, encoding: ALiBi, longest: int):
        super().__init__()
        self.check = Allowed(longest)
        self.register_buffer("profile", encoding.profile(torch.arange(1 - longest, longest)).T)

    def forward(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        distance = self.check(q_positions).unsqueeze(-1) - self.check(k_positions).unsqueeze(-2)
        bias = self.profile[distance + (self.check.longest - 1)].movedim(-1, -3)
        q_good, k_good = self.check.good(q_positions), self.check.good(k_positions)
        good = q_good.unsqueeze(-1) & k_good.unsqueeze(-2)
        return torch.where(good.unsqueeze(-3), bias, torch.nan)


class _RotaryProgram(nn.Module):
    outputs = ("q_encoded", "k_encoded")

    def __init__(self, encoding: Rotary, longest: int):
        super().__init__()
        self.encoding, self.stored = encoding, StoredRows(encoding, longest)

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.stored(positions)
        return self.rotated(q, rows), self.rotated(k, rows)

    def rotated(self, x: Tensor, rows: Tensor) -> Tensor:
        return self.encoding.encode_queries(x, rows)


class _OperatorProgram(_RotaryProgram):
    """The same by ONNX's own operator."""

    def rotated(self, x: Tensor, rows: Tensor) -> Tensor:
        rotary, width = self.encoding, self.encoding.rotated_dim
        return torch.onnx.ops.rotary_embedding(
            x,
            *rows.unbind(-2),
            interleaved=rotary.pairing == "interleaved",
            rotary_embedding_dim=0 if width == rotary.head_dim else width,
        )


class _TokenProgram(nn.Module):
    outputs = ("encoded",)

    def __init__(self, encoding: Sinusoidal, longest: int):
        super().__init__()
        self.encoding, self.stored = encoding, StoredRows(encoding, longest)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.encode(x, self.stored(positions))


class _EncoderProgram(nn.Module):
    outputs = ("encoded",)

    def __init__(self, encoder: Encoder, longest: int):
        super().__init__()
        self.encoder, self.check = copy(encoder), Allowed(longest)
        # Its own names, so that the tables of the given encoder stay.
        self.encoder._modules = {**encoder._modules}
        self.encoder.tables = _StoredTables(_encodings(encoder), longest)  # type: ignore[assignment]

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        # Without encodings, or with windows, positions meet no table that would refuse them.
        return self.encoder(x, self.check(positions))


class _StoredTables(nn.Module):
    """What ``Tables`` is to an encoder, out of stored tables alone."""

    def __init__(self, encodings: Sequence[Any], longest: int):
        super().__init__()
        self.encodings = list(dict.fromkeys(encodings))
        self.stored = nn.ModuleList(
            StoredProfile(each, longest) if isinstance(each, ALiBi) else StoredRows(each, longest)
            for each in self.encodings
        )

    def rows(self, encoding: nn.Module, positions: Tensor, **_: Any) -> Tensor:
        return self.stored[self.encodings.index(encoding)](positions)

    def rotations(
        self, encodings: tuple[QueryKeyEncoding, ...], positions: Tensor, **_: Any
    ) -> Rotations:
        return tuple((encoding, self.rows(encoding, positions)) for encoding in encodings), None

    def biases(self, encoding: ScoreEncoding, q: Tensor, k: Tensor, **_: Any) -> Tensor:
        return self.stored[self.encodings.index(encoding)](q, k)


def _encodings(module: Encoder) -> list[nn.Module]:
    """The encodings of an encoder, all of them such as can be stored."""
    found: list[nn.Module] = []
    for layer in dict.fromkeys((module.first, *module.layers)):
        assert isinstance(layer, Positional)
        remaps = layer.positions if layer.remaps else ()
        found += [*remaps, *layer.tokens, *layer.queries_keys, *layer.scores]
    for encoding in found:
        if type(encoding) not in (Rotary, Sinusoidal, ALiBi):
            raise TypeError(f"The encoder holds {encoding!r}, which cannot be exported.")
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's warnings about itself and torchvision."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
