"""Encodings and whole encoders as ONNX programs, with exact tables to a stated longest position."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
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

OPSETS: dict[Operator, int] = {"basic": 18, "RotaryEmbedding": 23}
"""The version of ONNX's operators that a program asks for: the first with ``RotaryEmbedding``, or
one that every runtime of recent years has."""


def onnx_program(
    module: Rotary | Sinusoidal | ALiBi | Encoder,
    *,
    longest: int,
    operator: Operator = "basic",
    heads: tuple[int, int] | None = None,
) -> "ONNXProgram":
    """An ONNX program of an encoding, or of a whole encoder; ``.save(path)`` writes it.

    Tables are built here, correctly rounded, and stored for positions 0 … longest − 1. Any other
    position, negative ones too, is refused when the program runs: onnxruntime's CPU provider ends
    with an error of the node that gathers. A provider that does not check indices would give NaN
    in place of every number that depends on such a position. (An encoder without encodings and
    windows has no use for positions, and no table that could refuse them.)

    Inputs and outputs, with any batch and any number of tokens:

    ==============  ===========================================  ==================================
    of              inputs                                       outputs
    ==============  ===========================================  ==================================
    ``Rotary``      q, k ``[batch, heads, seq, head_dim]``,      q_encoded, k_encoded
                    positions ``[batch, seq]``
    ``Sinusoidal``  x ``[batch, seq, dim]``, positions           encoded
    ``ALiBi``       q_positions ``[batch, q_len]``,              bias ``[batch, heads, q_len,
                    k_positions ``[batch, k_len]``               k_len]``
    ``Encoder``     x ``[batch, seq, dim]``, positions           encoded
    ==============  ===========================================  ==================================

    Args:
        module: What to export, in evaluation.
        longest: Number of positions in the tables.
        operator: ``"RotaryEmbedding"`` uses the operator of opset 23, where the first channels of a
            head rotate; ``"basic"`` is made of older ones. For ``Rotary`` alone.
        heads: Numbers of query and of key heads, by default (2, 1); for ``Rotary`` alone.

    Raises:
        TypeError: The module is of another kind, an encoder holds others, or its weights are not
            float32.
        ValueError: A number is not positive, the operator or ``heads`` do not fit, or heads stand
            elsewhere.
        ImportError: onnx and onnxscript are not installed.

    Reference:
        onnx.ai/onnx/operators/onnx__RotaryEmbedding.html.

    Example:
        >>> program = onnx_program(Sinusoidal(16), longest=64)  # doctest: +SKIP
        >>> [value.name for value in program.model.graph.inputs]  # doctest: +SKIP
        ['x', 'positions']
    """
    check_whole(longest=longest)
    check_choice(get_args(Operator), operator=operator)
    if operator == "RotaryEmbedding" and not isinstance(module, Rotary):
        raise ValueError(f"{operator} is the operator of Rotary; pass operator='basic'.")
    if isinstance(module, Rotary):
        return _rotary(module, longest, operator, (2, 1) if heads is None else heads)
    if heads is not None:
        raise ValueError(f"heads is {heads!r}; only programs of Rotary have heads. Leave it out.")
    if isinstance(module, Sinusoidal):
        return _tokens(module, longest)
    if isinstance(module, ALiBi):
        return _bias(module, longest)
    if isinstance(module, Encoder):
        return _encoder(module, longest)
    raise TypeError(
        f"module is a {type(module).__name__}; Rotary, Sinusoidal, ALiBi and Encoder can be "
        f"exported."
    )


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

    def poisoned(self, rows: Tensor, positions: Tensor) -> Tensor:
        """Rows, NaN where a position is none of these: for providers that do not check."""
        axes = (1,) * (rows.ndim - positions.ndim)
        good = ((positions >= 0) & (positions < self.longest)).view(*positions.shape, *axes)
        return torch.where(good, rows, torch.nan)


class StoredRows(nn.Module):
    """A table of rows 0 … longest − 1, gathered by position."""

    rows: Tensor

    def __init__(self, encoding: TokenEncoding | QueryKeyEncoding, longest: int):
        super().__init__()
        self.check = Allowed(longest)
        table = encoding.table(torch.arange(longest))
        self.register_buffer("rows", table.detach().clone())

    def forward(self, positions: Tensor) -> Tensor:
        return self.check.poisoned(self.rows[self.check(positions)], positions)


class StoredProfile(nn.Module):
    """A relative bias at distances −(longest − 1) … longest − 1, gathered by distance."""

    profile: Tensor

    def __init__(self, encoding: ALiBi, longest: int):
        super().__init__()
        self.check, self.longest = Allowed(longest), longest
        self.register_buffer("profile", encoding.profile(torch.arange(1 - longest, longest)).T)

    def forward(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        q, k = self.check(q_positions), self.check(k_positions)
        distance = q.unsqueeze(-1) - k.unsqueeze(-2)
        bias = self.profile[distance + (self.longest - 1)].movedim(-1, -3)
        good = self._good(q_positions).unsqueeze(-1) & self._good(k_positions).unsqueeze(-2)
        return torch.where(good.unsqueeze(-3), bias, torch.nan)

    def _good(self, positions: Tensor) -> Tensor:
        return (positions >= 0) & (positions < self.longest)


class _RotaryProgram(nn.Module):
    def __init__(self, encoding: Rotary, longest: int):
        super().__init__()
        self.encoding, self.stored = encoding, StoredRows(encoding, longest)

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.stored(positions)
        return self.encoding.encode_queries(q, rows), self.encoding.encode_keys(k, rows)


class _OperatorProgram(_RotaryProgram):
    """The same by one operator for each of queries and keys."""

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.stored(positions)
        return self._rotated(q, rows), self._rotated(k, rows)

    def _rotated(self, x: Tensor, rows: Tensor) -> Tensor:
        whole = self.encoding.rotated_dim == self.encoding.head_dim
        return torch.onnx.ops.rotary_embedding(
            x,
            rows[..., 0, :],
            rows[..., 1, :],
            interleaved=self.encoding.pairing == "interleaved",
            rotary_embedding_dim=0 if whole else self.encoding.rotated_dim,
        )


class _TokenProgram(nn.Module):
    def __init__(self, encoding: Sinusoidal, longest: int):
        super().__init__()
        self.encoding, self.stored = encoding, StoredRows(encoding, longest)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.encode(x, self.stored(positions))


class _StoredTables(nn.Module):
    """What ``Tables`` is to an encoder, out of stored tables alone."""

    def __init__(self, encodings: Sequence[nn.Module], longest: int):
        super().__init__()
        self.encodings = list(dict.fromkeys(encodings))
        self.stored = nn.ModuleList(
            StoredProfile(encoding, longest)
            if isinstance(encoding, ALiBi)
            else StoredRows(encoding, longest)  # type: ignore[arg-type]
            for encoding in self.encodings
        )

    def _of(self, encoding: nn.Module) -> nn.Module:
        return self.stored[self.encodings.index(encoding)]

    def rows(self, encoding: nn.Module, positions: Tensor, **_: Any) -> Tensor:
        return self._of(encoding)(positions)

    def rotations(
        self, encodings: tuple[QueryKeyEncoding, ...], *, positions: Tensor, **_: Any
    ) -> Rotations:
        return tuple((encoding, self.rows(encoding, positions)) for encoding in encodings), None

    def biases(self, encoding: ScoreEncoding, q: Tensor, k: Tensor, **_: Any) -> Tensor:
        return self._of(encoding)(q, k)


class _EncoderProgram(nn.Module):
    def __init__(self, encoder: Encoder, longest: int):
        super().__init__()
        self.encoder = encoder
        self.check = Allowed(longest)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        # Without encodings, or with windows, positions meet no table that would refuse them.
        return self.encoder(x, self.check(positions))


def _rotary(
    module: Rotary, longest: int, operator: Operator, heads: tuple[int, int]
) -> "ONNXProgram":
    if not module.heads_first:
        raise ValueError("heads_first is False; the program takes [batch, heads, seq, head_dim].")
    if operator == "RotaryEmbedding" and module.rotated == "suffix":
        raise ValueError(
            "RotaryEmbedding rotates the first channels, and this encoding the last. Pass "
            "operator='basic'."
        )
    check_whole(query_heads=heads[0], key_heads=heads[1])
    program = (_RotaryProgram if operator == "basic" else _OperatorProgram)(module, longest)
    q, k = (torch.zeros(2, count, 3, module.head_dim) for count in heads)
    axes = {0: "batch", 2: "seq"}
    return _exported(
        program,
        {"q": (q, axes), "k": (k, axes), "positions": _positions("seq")},
        ("q_encoded", "k_encoded"),
        longest=longest,
        told=repr(module),
        operator=operator,
    )


def _tokens(module: Sinusoidal, longest: int) -> "ONNXProgram":
    if not module.batch_first:
        raise ValueError("batch_first is False; the program takes [batch, seq, dim].")
    x = torch.zeros(2, 3, module.dim), {0: "batch", 1: "seq"}
    given = {"x": x, "positions": _positions("seq")}
    stored = _TokenProgram(module, longest)
    return _exported(stored, given, ("encoded",), longest=longest, told=repr(module))


def _bias(module: ALiBi, longest: int) -> "ONNXProgram":
    given = {"q_positions": _positions("q_len"), "k_positions": _positions("k_len", 4)}
    stored = StoredProfile(module, longest)
    return _exported(stored, given, ("bias",), longest=longest, told=repr(module))


def _encoder(module: Encoder, longest: int) -> "ONNXProgram":
    encodings = _encodings(module)
    _check_dtype(module)
    program = _EncoderProgram(module, longest)
    tables, before = _StoredTables(encodings, longest), module.tables
    x = torch.zeros(2, 3, module.dim), {0: "batch", 1: "seq"}
    try:
        module.tables = tables  # type: ignore[assignment]
        given = {"x": x, "positions": _positions("seq")}
        return _exported(program, given, ("encoded",), longest=longest, told=_told(module))
    finally:
        del module.tables
        module.tables = before


def _encodings(module: Encoder) -> list[nn.Module]:
    """The encodings of an encoder, all of them such as can be stored."""
    found: list[nn.Module] = []
    for layer in dict.fromkeys((module.first, *module.layers)):
        assert isinstance(layer, Positional)
        if layer.remaps:
            raise TypeError(f"{layer!r} changes positions; only encodings of them can be stored.")
        found += [*layer.tokens, *layer.queries_keys, *layer.scores]
    for encoding in found:
        if type(encoding) not in (Rotary, Sinusoidal, ALiBi):
            raise TypeError(
                f"The encoder holds {encoding!r}; Rotary, Sinusoidal and ALiBi can be exported."
            )
    return found


def _check_dtype(module: Encoder) -> None:
    # The tables are float32, and ONNX's operators take no two dtypes.
    for name, weight in module.named_parameters():
        if weight.dtype != torch.float32:
            raise TypeError(
                f"The encoder's {name} is {weight.dtype}; programs hold float32. Export "
                f"copy.deepcopy(encoder).float()."
            )


def _told(module: Encoder) -> str:
    return f"Encoder({module.dim}, {module.heads}, {module.depth}), {module.positional!r}"


def _positions(name: str, length: int = 3) -> tuple[Tensor, dict[int, str]]:
    return torch.arange(length).expand(2, length).contiguous(), {0: "batch", 1: name}


def _exported(
    program: nn.Module,
    inputs: dict[str, tuple[Tensor, dict[int, str]]],
    outputs: Sequence[str],
    *,
    longest: int,
    told: str,
    operator: Operator = "basic",
) -> "ONNXProgram":
    """The program with named, dynamic axes, traced in evaluation and without gradients."""
    _check_installed()
    with torch.no_grad(), _quiet(), in_evaluation(program):
        exported = torch.onnx.export(
            program,
            tuple(tensor for tensor, _ in inputs.values()),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=tuple(axes for _, axes in inputs.values()),
            opset_version=OPSETS[operator],
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    exported.model.metadata_props["posenc.longest"] = str(longest)
    exported.model.metadata_props["posenc.module"] = told
    return exported


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch's exporter says of itself: its own deprecations, and torchvision."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _check_installed() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise ImportError(f"ONNX programs need {' and '.join(missing)}. Install posenc[onnx].")
