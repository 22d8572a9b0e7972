"""The same biases and masks as functions for FlexAttention, on accelerators."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.backends.base import Backend, Request
from posenc.backends.sdpa import grouped
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import ScoreEncoding
from posenc.encodings.bias import ScoreBias
from posenc.positions import Coordinates, checked

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

FARTHEST_APART = 2**22
"""Distances that a profile spans at most; for positions farther apart a table is smaller."""


def score_mod(
    bias: ScoreBias,
    q_positions: Tensor | Coordinates,
    k_positions: Tensor | Coordinates,
    *,
    dtype: torch.dtype = torch.float32,
) -> ScoreMod:
    """A bias as the function that FlexAttention applies to each score.

    A relative bias is read from its profile, one number a distance; any other from its table.

    Args:
        bias: The bias.
        q_positions: ``[q_len]`` or ``[batch, q_len]``; coordinates are read from a table.
        k_positions: ``[k_len]`` or ``[batch, k_len]``.
        dtype: Dtype of the bias.

    Reference:
        Dong et al. 2024, "Flex Attention" (arXiv:2412.05496).

    Example:
        >>> from posenc import ALiBi
        >>> add = score_mod(ALiBi(1), torch.arange(3), torch.arange(3))
        >>> index = torch.tensor([0, 2])
        >>> add(torch.zeros(2), index * 0, index * 0, index, index * 0)
        tensor([ 0.0000, -0.0078])
    """
    if not isinstance(bias, ScoreBias):
        raise TypeError(f"bias is a {type(bias).__name__}; FlexAttention adds a ScoreBias.")
    q_positions = checked(q_positions, "q_positions", reals=True)
    k_positions = checked(k_positions, "k_positions", reals=True)
    ends = _ends_of_distance(bias, q_positions, k_positions)
    if ends is None:
        table = bias.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        table = table if table.ndim == 4 else table.unsqueeze(0)

        def from_table(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return score + table[_row(b, table), h, q, k]

        return from_table
    assert isinstance(q_positions, Tensor)
    assert isinstance(k_positions, Tensor)
    queries, keys = _with_batch(q_positions), _with_batch(k_positions)
    least, most = ends
    profile = bias.profile(torch.arange(least, most + 1, device=queries.device), dtype=dtype)  # type: ignore[operator]

    def from_profile(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        distance = queries[_row(b, queries), q] - keys[_row(b, keys), k]
        return score + profile[h, distance - least]

    return from_profile


def _row(b: Tensor, rows: Tensor) -> Tensor:
    """Which of these a row of the batch takes: its own, or the only one."""
    return b if len(rows) > 1 else b * 0


def _ends_of_distance(
    bias: ScoreEncoding, q_positions: Tensor | Coordinates, k_positions: Tensor | Coordinates
) -> tuple[int, int] | None:
    """The least and the largest distance, where a bias goes by a distance that a profile spans."""
    if isinstance(q_positions, Coordinates) or isinstance(k_positions, Coordinates):
        return None
    if not bias.has_profile or not (q_positions.numel() and k_positions.numel()):
        return None
    least = int(q_positions.amin()) - int(k_positions.amax())
    most = int(q_positions.amax()) - int(k_positions.amin())
    return (least, most) if most - least < FARTHEST_APART else None


def mask_mod(spec: AttentionSpecification) -> MaskMod | None:
    """What order, a window, padding and documents hide; ``None`` where they hide nothing."""
    hidden_by: list[MaskMod] = []
    if spec.is_causal and spec.q_rows is None and spec.order_is_that_of_rows:
        shift = spec.k_len - spec.q_len if spec.first_row is None else spec.first_row
        hidden_by.append(lambda b, h, q, k: q + shift >= k)
    elif spec.is_causal:
        placed = spec.q_rows is None or spec.k_rows is None
        sides = (spec.query_places, spec.key_places) if placed else (spec.q_rows, spec.k_rows)
        later_than, later = map(_with_batch, sides)  # type: ignore[arg-type]
        hidden_by.append(
            lambda b, h, q, k: later_than[_row(b, later_than), q] >= later[_row(b, later), k]
        )
    if spec.reach is not None:
        ends = _ends_of_window(_with_batch(spec.query_places), spec.reach)
        first, last = map(_with_batch, ends)
        keys = _with_batch(spec.key_places)

        def within(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            key = keys[_row(b, keys), k]
            return (first[_row(b, first), q] <= key) & (key <= last[_row(b, last), q])

        hidden_by.append(within)
    if spec.padding_mask is not None:
        real = _apart(spec.padding_mask)
        hidden_by.append(lambda b, h, q, k: real[b, k])
    if spec.documents is not None and spec.q_documents is not None:
        documents, of_queries = _apart(spec.documents), _apart(spec.q_documents)
        hidden_by.append(lambda b, h, q, k: of_queries[b, q] == documents[b, k])
    if not hidden_by:
        return None
    from torch.nn.attention.flex_attention import and_masks

    return and_masks(*hidden_by)


def _ends_of_window(queries: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """The first and the last position that each query sees; where they leave int64, its ends."""
    reach = min(window - 1, torch.iinfo(torch.int64).max)
    least, most = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
    first = torch.where(queries < least + reach, least, queries - reach)
    return first, torch.where(queries > most - reach, most, queries + reach)


@dataclass(frozen=True, eq=False)
class Flex:
    """FlexAttention; what it reads is built once a specification, for any number of layers."""

    why: str
    score_mod: ScoreMod | None  # soft capping and all biases; None where scores stay as they are
    block_mask: "BlockMask | None"  # blocks of 128 × 128 pairs with a visible one
    sinks: Tensor | None = None  # [heads], if there are any
    name = "flex"
    reads_padding = True

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        assert not dropout_p
        if query.device.type != "cuda":
            query, key, value = (_without_gradient(each) for each in (query, key, value))
        attend = _compiled() if query.device.type == "cuda" else _interpreted()
        given = {
            "score_mod": self.score_mod,
            "block_mask": self.block_mask,
            "scale": scale,
            "enable_gqa": grouped(query, key),
        }
        if self.sinks is None:
            return attend(query, key, value, **given)
        out, log_sum = _with_log_sum(attend, query, key, value, given)
        # A sink adds exp(sink) to the sum of a row's exponentials; a row that sees nothing is zero.
        ahead = log_sum - self.sinks.to(log_sum.dtype).view(1, -1, 1)
        share = torch.sigmoid(ahead.masked_fill(log_sum == -torch.inf, -torch.inf))
        return (out * share.unsqueeze(-1)).to(out.dtype)


def _without_gradient(x: Tensor) -> Tensor:
    """A tensor of its own that asks for no gradient, which FlexAttention wants on a CPU."""
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError("The backend 'flex' cannot serve: on a CPU it has no backward pass.")
    return x.detach()


def _with_log_sum(
    attend: Callable[..., Any], query: Tensor, key: Tensor, value: Tensor, given: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """The output, and the logarithm of the sum of each row's exponentials."""
    from torch.nn.attention import flex_attention

    if not hasattr(flex_attention, "AuxRequest"):  # before torch 2.9
        return attend(query, key, value, **given, return_lse=True)
    asked = flex_attention.AuxRequest(lse=True)
    out, auxiliary = attend(query, key, value, **given, return_aux=asked)
    return out, auxiliary.lse


def _score_mod(request: Request) -> ScoreMod | None:
    spec, cap = request.specification, request.specification.softcap
    mods = [
        score_mod(bias, spec.queries, spec.keys, dtype=request.dtype)  # type: ignore[arg-type]
        for bias in request.scores
    ]
    if not mods and cap is None:
        return None

    def all_mods(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        if cap is not None:
            score = cap * torch.tanh(score / cap)
        for mod in mods:
            score = mod(score, b, h, q, k)
        return score

    return all_mods


def _block_mask(spec: AttentionSpecification) -> "BlockMask | None":
    hidden = mask_mod(spec)
    if hidden is None:
        return None
    from torch.nn.attention.flex_attention import create_block_mask

    device = "cpu" if spec.device is None else str(spec.device)
    return create_block_mask(hidden, spec.batch, None, spec.q_len, spec.k_len, device=device)


def flex(request: Request) -> Backend | str:
    """The backend, or why it cannot serve."""
    spec = request.specification
    on_accelerator = spec.device is not None and spec.device.type == "cuda"
    if not (on_accelerator or request.insisted):
        return "it pays on an accelerator only"
    if not request.biases_alone:
        return "an encoding depends on content"
    if spec.attn_mask is not None or request.dropout_p:
        return "it takes neither masks of another make nor dropout"
    if request.learns and not on_accelerator:
        return "on a CPU it has no backward pass to a bias"
    why = "what changes a score is computed beside it, and a mask of blocks is held"
    return Flex(why, _score_mod(request), _block_mask(spec), spec.sinks)


def _with_batch(positions: Tensor) -> Tensor:
    return _apart(positions) if positions.ndim >= 2 else positions.unsqueeze(0)


def _apart(told: Tensor) -> Tensor:
    """These as a tensor of their own: torch's compiler may fail where it reads one twice."""
    return told.view_as(told)


def _interpreted() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention  # type: ignore[return-value]


@cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(_interpreted())
