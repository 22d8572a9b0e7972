"""Encodings and whole encoders as ONNX programs, with exact tables to a stated longest position."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.arguments import check_choice
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.interop.changes import in_evaluation
from posenc.transformer import Encoder, Tables

if TYPE_CHECKING:
    from torch.onnx import ONNXProgram

Operator = Literal["basic", "RotaryEmbedding"]


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
    inputs = {"positions": _positions("seq")}
    if isinstance(module, Rotary):
        if operator != "basic" and module.rotated == "suffix":
            raise ValueError(f"RotaryEmbedding rotates no last channels, as {module!r} does.")
        kind: Any = _RotaryProgram if operator == "basic" else _OperatorProgram
        heads_of = zip("qk", heads or (2, 1), strict=True)
        width, axes = module.head_dim, {0: "batch", 2: "seq"}
        inputs = {name: (torch.zeros(2, n, 3, width), axes) for name, n in heads_of} | inputs
    elif isinstance(module, ALiBi):
        kind = _BiasProgram
        inputs = {"q_positions": _positions("q_len"), "k_positions": _positions("k_len", 4)}
    elif isinstance(module, Sinusoidal | Encoder):
        kind = _TokenProgram if isinstance(module, Sinusoidal) else _EncoderProgram
        inputs = {"x": (torch.zeros(2, 3, module.dim), {0: "batch", 1: "seq"})} | inputs
    else:
        raise TypeError(f"module is a {type(module).__name__}; it cannot be exported.")
    if isinstance(module, Encoder):
        told = f"Encoder({module.dim}, {module.heads}, {module.depth}), {module.positional!r}"
    program = kind(module, longest)
    with torch.no_grad(), _quiet(), in_evaluation(program):
        exported: Any = torch.onnx.export(
            program,
            tuple(tensor for tensor, _ in inputs.values()),
            input_names=list(inputs),
            output_names=program.outputs,
            dynamic_shapes=tuple(axes for _, axes in inputs.values()),
            opset_version=18 if operator == "basic" else 23,  # the first with the operator
            dynamo=True,
            verbose=False,
        )
    about = {"posenc.longest": str(longest), "posenc.module": told}
    exported.model.metadata_props.update(about)
    return exported


def _positions(name: str, length: int = 3) -> tuple[Tensor, dict[int, str]]:
    """An example, and the names of its dynamic axes."""
    return torch.arange(length).expand(2, length).contiguous(), {0: "batch", 1: name}


class Stored(nn.Module):
    """The table of an encoding at 0 … longest − 1, or the profile of a bias between these."""

    allowed: Tensor
    rows: Tensor

    def __init__(self, encoding: Any, longest: int):
        super().__init__()
        self.encoding, self.longest = encoding, longest
        self.register_buffer("allowed", torch.arange(longest))
        if isinstance(encoding, ALiBi):
            rows = encoding.profile(torch.arange(1 - longest, longest)).T
        else:
            rows = encoding.table(self.allowed)
        self.register_buffer("rows", rows.detach().clone())

    def inside(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Positions as they are, and whether they are allowed, which not all providers check."""
        # Gathering counts negative indices from the end, in torch and in ONNX alike.
        index = self.allowed[torch.where(positions < 0, self.longest, positions)]
        return index, (positions >= 0) & (positions < self.longest)

    def table(self, positions: Tensor) -> Tensor:
        index, good = self.inside(positions)
        rows = self.rows[index]
        return torch.where(good.view(*good.shape, *(1,) * (rows.ndim - good.ndim)), rows, torch.nan)

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        (q, q_good), (k, k_good) = self.inside(q_positions), self.inside(k_positions)
        rows = self.rows[q.unsqueeze(-1) - k.unsqueeze(-2) + (self.longest - 1)].movedim(-1, -3)
        good = q_good.unsqueeze(-1) & k_good.unsqueeze(-2)
        return torch.where(good.unsqueeze(-3), rows, torch.nan)


class _BiasProgram(Stored):
    outputs = ("bias",)

    def forward(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return self.bias(q_positions, k_positions)


class _TokenProgram(Stored):
    outputs = ("encoded",)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.encode(x, self.table(positions))


class _RotaryProgram(Stored):
    outputs = ("q_encoded", "k_encoded")

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.table(positions)
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


class _EncoderProgram(nn.Module):
    outputs = ("encoded",)

    def __init__(self, encoder: Encoder, longest: int):
        super().__init__()
        self.encoder, self.check = copy(encoder), Stored(Sinusoidal(2), longest)
        self.encoder.tables = _StoredTables(encoder, longest)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        # Without encodings, or with windows, positions meet no table that would refuse them.
        return self.encoder(x, self.check.inside(positions)[0])


class _StoredTables(Tables):
    """Of an encoder whose encodings can all be stored."""

    def __init__(self, encoder: Encoder, longest: int):
        super().__init__()
        self.stored: dict[Any, Stored] = {}
        for layer in (encoder.first, *encoder.layers):
            remaps = layer.positions if layer.remaps else ()
            for encoding in (*remaps, *layer.tokens, *layer.queries_keys, *layer.scores):
                if type(encoding) not in (Rotary, Sinusoidal, ALiBi):
                    raise TypeError(f"The encoder holds {encoding!r}, which cannot be exported.")
                self.stored[encoding] = Stored(encoding, longest)

    def rows(self, encoding: nn.Module, positions: Any, **_: Any) -> Tensor:
        return self.stored[encoding].table(positions)

    def biases(self, encoding: nn.Module, q_positions: Any, k_positions: Any, **_: Any) -> Tensor:
        return self.stored[encoding].bias(q_positions, k_positions)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's warnings about itself and torchvision."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(before)
