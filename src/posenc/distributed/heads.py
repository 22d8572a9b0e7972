"""Ranks exchange tokens for heads: each computes whole rows for a part of the heads."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from posenc.backends.base import Backend, Request
from posenc.backends.choice import considered, explained
from posenc.backends.dense import dense
from posenc.backends.explicit import explicit
from posenc.backends.specification import AttentionSpecification
from posenc.distributed.collectives import exchanged
from posenc.distributed.request import SpreadRequest, Way
from posenc.distributed.tokens import among
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.bias import ScoreBias


@dataclass(frozen=True, eq=False)
class Heads(Way):
    """Tokens are exchanged for heads, whole rows of some heads are computed, and results go back.

    Reference:
        Jacobs et al. 2023, "DeepSpeed Ulysses", section 3 (arXiv:2309.14509).
    """

    backend: Backend
    name = "heads"
    what = "queries, keys, values and results are exchanged for those of other heads"
    why = "heads divide among ranks"

    @property
    def reads_padding(self) -> bool:
        """As the backend does."""
        return self.backend.reads_padding

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        query, key, value = map(self._rows_of_some_heads, (query, key, value))
        out = self.backend(query, key, value, scale=scale, dropout_p=dropout_p)
        return self._tokens_of_all_heads(out)

    def _rows_of_some_heads(self, x: Tensor) -> Tensor:
        """[batch, heads, local, width] → [batch, heads / world, length, width]."""
        by_rank = exchanged(x.unflatten(1, (self.cut.world, -1)).movedim(1, 0), self.cut.group)
        return self.cut.in_order(by_rank.movedim(0, 2).flatten(2, 3), 2)

    def _tokens_of_all_heads(self, x: Tensor) -> Tensor:
        """The inverse."""
        by_rank = self.cut.out_of_order(x, 2).unflatten(2, (self.cut.world, -1))
        return exchanged(by_rank.movedim(2, 0), self.cut.group).movedim(0, 1).flatten(1, 2)


def heads(request: SpreadRequest) -> Heads | str:
    """The way, or why it cannot serve."""
    cut, sizes = request.cut, request.sizes
    if sizes.heads % cut.world or sizes.kv_heads % cut.world:
        counts = f"{sizes.heads} query heads and {sizes.kv_heads} key heads"
        return f"{counts} do not divide among {cut.world} ranks"
    for encoding in request.scores:
        beyond = encoding.changes_output or encoding.reads_hidden
        if not isinstance(encoding, ScoreBias) or beyond:
            return f"{type(encoding).__name__} cannot be cut by head"
    each = sizes.heads // cut.world
    some = slice(cut.rank * each, (cut.rank + 1) * each)
    spec = among(request.whole, request.specification, pairwise=request.pairwise)
    if spec.sinks is not None:
        spec = replace(spec, sinks=spec.sinks[some])
    chosen, inner = _of_heads(request, spec, some)
    numbers = sizes.heads * (sizes.head_dim + sizes.value_dim) + request.key_value_numbers
    moves = (cut.world - 1) * request.bytes_of(numbers) // cut.world
    return Heads(cut, moves, inner, chosen)


def _of_heads(
    request: SpreadRequest, spec: AttentionSpecification, some: slice
) -> tuple[Backend, str]:
    """The backend for some heads of whole rows."""
    dtype, whole = request.sizes.dtype, {}

    def table(encoding: ScoreEncoding, *positions: Tensor, dtype: torch.dtype) -> Tensor:
        made = request.table(whole.get(encoding, encoding), *positions, dtype=dtype)
        return made[..., some, :, :]

    if request.scores and torch.compiler.is_compiling():  # where no module can be made
        asked = Request(request.scores, spec, working_dtype(dtype), 0.0, table, insisted=True)
        made = dense(asked)
        return explicit(asked) if isinstance(made, str) else made, ""  # type: ignore[return-value]
    biases = [bias for bias in request.scores if isinstance(bias, ScoreBias)]
    part = [bias[some] for bias in biases]
    whole.update(zip(part, biases, strict=True))
    count = some.stop - some.start
    chosen, passed = considered(
        part, spec, heads=count, dtype=dtype, table=table, backend=request.backend
    )
    return chosen, explained(chosen, passed)
