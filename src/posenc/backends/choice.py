"""Which way attention is computed, decided once for all layers."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from posenc.backends.masks import joined, with_causal
from posenc.backends.specification import AttentionSpecification
from posenc.backends.toeplitz import Toeplitz, toeplitz
from posenc.backends.ways import Dense, Explicit, Flex, Plain, Plan, Strided
from posenc.encodings.base import RelativeBias, ScoreBias, ScoreEncoding, working_dtype

SMALL = 128 * 128  # pairs of a head, up to which a matrix is cheaper than looking for structure


@runtime_checkable
class BiasTable(Protocol):
    """Something that gives the dense table of a score encoding."""

    def __call__(self, encoding: ScoreEncoding, q_positions: Tensor, k_positions: Tensor, *,
                 dtype: torch.dtype) -> Tensor: ...  # fmt: skip


def built(
    encoding: ScoreEncoding, q_positions: Tensor, k_positions: Tensor, *, dtype: torch.dtype
) -> Tensor:
    """The table, computed now."""
    return encoding.table(q_positions, k_positions, dtype=dtype)


def plan(
    scores: Sequence[ScoreEncoding],
    specification: AttentionSpecification,
    *,
    heads: int,
    dtype: torch.dtype,
    dropout: float = 0.0,
    table: BiasTable = built,
    route: str | None = None,
) -> Plan:
    """The cheapest exact way for these encodings and this specification.

    Args:
        scores: Encodings of the scores, in order.
        specification: Who stands where, and who sees whom.
        heads: Number of query heads.
        dtype: Dtype of queries and keys.
        dropout: Probability of dropping a weight, in this call.
        table: What gives dense tables; one that keeps them may save work.
        route: The name of a route to insist on.

    Raises:
        ValueError: An encoding was built for other heads, or ``route`` is none or cannot be taken.

    Example:
        >>> from posenc import ALiBi
        >>> plan([ALiBi(8)], AttentionSpecification(1, 512, 512), heads=8, dtype=torch.float32).name
        'strided'
    """
    return considered(
        scores, specification, heads=heads, dtype=dtype, dropout=dropout, table=table, route=route
    )[0]


def considered(
    scores: Sequence[ScoreEncoding],
    specification: AttentionSpecification,
    *,
    heads: int,
    dtype: torch.dtype,
    dropout: float = 0.0,
    table: BiasTable = built,
    route: str | None = None,
) -> tuple[Plan, dict[str, str]]:
    """The plan, and why each route before it was passed over; arguments as for ``plan``."""
    check_heads(scores, heads)
    if route not in (None, *ROUTES):
        raise ValueError(f"route is {route!r}; it must be one of {', '.join(ROUTES)}, or None.")
    passed = {}
    for name in ROUTES if route is None else (route,):
        ask = ROUTES[name]
        made = ask(scores, specification, working_dtype(dtype), dropout, table, route is not None)
        if not isinstance(made, str):
            return made, passed
        passed[name] = made
    raise ValueError(f"The route {route!r} cannot be taken: {passed[str(route)]}. Leave route out.")


def with_tables(
    scores: Sequence[tuple[ScoreEncoding, Tensor]],
    mask: Tensor | None,
    causal: bool,
    q_len: int,
    k_len: int,
    device: torch.device,
) -> Plan:
    """The plan where tables are there already: nothing of their structure is known."""
    if not scores and mask is None:
        return Plain("nothing but order hides a score", causal)
    mask = with_causal(mask, causal, q_len, k_len, device)
    if not all(isinstance(encoding, ScoreBias) for encoding, _ in scores):
        return Explicit("an encoding needs the scores themselves", tuple(scores), mask)
    for _, table in scores:
        mask = _added(table if table.ndim == 4 else table.unsqueeze(0), mask)
    assert mask is not None
    return Dense("tables of queries × keys were given", mask)


def check_heads(scores: Sequence[ScoreEncoding], heads: int) -> None:
    """Raise for an encoding that was built for another number of heads."""
    for encoding in scores:
        if encoding.heads != heads:
            raise ValueError(
                f"{type(encoding).__name__} was built for {encoding.heads} heads; attention has "
                f"{heads}. Build it with heads={heads}."
            )


def _plain(scores, specification: AttentionSpecification, *_: Any) -> Plan | str:
    if scores:
        return "an encoding changes the scores"
    if not specification.hides_nothing_but_order:
        return "a mask, padding, documents or a window hide keys"
    if not specification.causal or specification.sees_all:
        return Plain("nothing changes or hides a score", causal=False)
    if specification.in_step:
        return Plain("order alone hides keys", causal=True)
    return "queries and keys are not in step, as a plain causal mask needs them"


def _strided(
    scores, specification: AttentionSpecification, dtype, dropout: float, _, wanted: bool
) -> Plan | str:
    if not all(isinstance(encoding, RelativeBias) for encoding in scores):
        return "an encoding needs more than a distance"
    if dropout and _learns(scores):
        return "a bias learns while weights are dropped"
    if torch.compiler.is_compiling() and _learns(scores):
        return "a bias learns, and a graph holds no blocks"
    if not wanted and specification.q_len * specification.k_len <= SMALL:
        return "there are few pairs"
    if not wanted and not scores and specification.hides_padding_alone:
        return "padding alone needs no matrix"

    def bias(q_len: int, k_len: int, offset: int) -> Toeplitz:
        return toeplitz(
            scores,
            q_len,
            k_len,
            offset,
            causal=specification.causal,
            window=specification.window,
            dtype=dtype,
            device=specification.device,
        )

    why = "positions run on by one and only distance counts"
    if (
        specification.is_one_piece
    ):  # also in a graph, where lengths are symbols and cannot be compared
        offset = specification.k_len - specification.q_len
        return Strided(
            why, None, (bias(specification.q_len, specification.k_len, offset),), (offset,)
        )
    pieces = specification.pieces()
    if isinstance(pieces, str):
        return pieces
    biases = {lengths: bias(*lengths) for lengths in {piece.lengths for piece in pieces}}
    every = tuple(biases[piece.lengths] for piece in pieces)
    return Strided(why, pieces, every, tuple(piece.offset for piece in pieces))


def _learns(scores: Sequence[ScoreEncoding]) -> bool:
    learns = any(p.requires_grad for encoding in scores for p in encoding.parameters())
    return learns and torch.is_grad_enabled()


def _flex(
    scores, specification: AttentionSpecification, _, dropout: float, __, wanted: bool
) -> Plan | str:
    on_accelerator = specification.device is not None and specification.device.type == "cuda"
    if not (on_accelerator or wanted):
        return "it pays on an accelerator only"
    if not all(isinstance(encoding, ScoreBias) for encoding in scores):
        return "an encoding depends on content"
    if specification.mask is not None or dropout:
        return "it takes neither masks of another make nor dropout"
    return Flex("a bias computed beside each score needs no memory", tuple(scores), specification)


def _dense(
    scores, specification: AttentionSpecification, dtype, _, table: BiasTable, __
) -> Plan | str:
    if not all(isinstance(encoding, ScoreBias) for encoding in scores):
        return "an encoding depends on content"
    mask = specification.mask
    for encoding in scores:
        bias = table(encoding, specification.queries, specification.keys, dtype=dtype)
        mask = _added(bias if bias.ndim == 4 else bias.unsqueeze(0), mask)
    mask = joined(mask, specification.visible())
    if mask is None:
        return Plain("nothing changes or hides a score", causal=False)
    return Dense("a mask of queries × keys holds all of it", mask)


def _added(bias: Tensor, mask: Tensor | None) -> Tensor:
    """A bias and what there was before it: nothing, another bias, or a mask of either make."""
    if mask is None:
        return bias
    return torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask


def _explicit(
    scores, specification: AttentionSpecification, dtype, _, table: BiasTable, __
) -> Plan | str:
    tables = tuple(
        (encoding, table(encoding, specification.queries, specification.keys, dtype=dtype))
        for encoding in scores
    )
    mask = joined(specification.mask, specification.visible())
    return Explicit("an encoding needs the scores themselves", tables, mask)


ROUTES = {
    "sdpa": _plain,
    "flex": _flex,
    "strided": _strided,
    "dense": _dense,
    "explicit": _explicit,
}
