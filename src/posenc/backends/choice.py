"""Which backend computes attention, decided once for all layers."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc.backends.base import Backend, Request, TableBuilder, built
from posenc.backends.dense import Dense, dense
from posenc.backends.explicit import Explicit, check_table, explicit
from posenc.backends.flex import flex
from posenc.backends.masks import added, with_causal
from posenc.backends.neighbors import check_scores_know_documents
from posenc.backends.sdpa import SDPA, sdpa
from posenc.backends.specification import AttentionSpecification
from posenc.backends.strided import strided
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.bias import ScoreBias

BACKENDS: dict[str, Callable[[Request], Backend | str]] = {
    "sdpa": sdpa,
    "flex": flex,
    "strided": strided,
    "dense": dense,
    "explicit": explicit,
}
"""Every backend by name, the cheapest first; each gives itself, or why it cannot serve."""


def considered(
    scores: Sequence[ScoreEncoding],
    specification: AttentionSpecification,
    *,
    heads: int,
    dtype: torch.dtype,
    dropout_p: float = 0.0,
    table: TableBuilder = built,
    backend: str | None = None,
) -> tuple[Backend, dict[str, str]]:
    """The cheapest exact backend, and why each before it was passed over."""
    if scores:
        check_heads(scores, heads, specification.softcap)
        check_scores_know_documents(scores, specification)
    if specification.is_empty:
        return SDPA("there is no pair of a query and a key", is_causal=False), {}
    request = Request(
        scores, specification, working_dtype(dtype), dropout_p, table, insisted=backend is not None
    )
    passed: dict[str, str] = {}
    for name in BACKENDS if backend is None else (backend,):
        if name not in BACKENDS:
            raise ValueError(f"backend is {backend!r}; it must be one of {', '.join(BACKENDS)}.")
        made = BACKENDS[name](request)
        if not isinstance(made, str):
            return made, passed
        passed[name] = made
    raise ValueError(f"The backend {backend!r} cannot serve: {passed[str(backend)]}.")


def explained(chosen: Backend, passed: dict[str, str]) -> str:
    """A line for the backend, and one for each that was passed over."""
    lines = [f"{chosen.name}: {chosen.why}", *(f"  not {n}: {why}" for n, why in passed.items())]
    return "\n".join(lines)


def from_tables(
    scores: Sequence[tuple[ScoreEncoding, Tensor]],
    mask: Tensor | None,
    is_causal: bool,
    query: Tensor,
    key: Tensor,
) -> Backend:
    """The backend where tables are there already: nothing of their structure is known."""
    if not scores and mask is None:
        return SDPA("nothing but order hides a score", is_causal)
    any_numbers = mask is not None and mask.is_floating_point()
    q_len, k_len = query.shape[-2], key.shape[-2]
    mask = with_causal(mask, is_causal, q_len, k_len, query.device)
    biases = all(isinstance(e, ScoreBias) and not e.changes_output for e, _ in scores)
    if not biases:
        return Explicit("an encoding needs the scores themselves", tuple(scores), mask)
    for encoding, table in scores:
        check_table(encoding, table, q_len, k_len)
        mask = added(table if table.ndim == 4 else table.unsqueeze(0), mask)
    assert mask is not None
    return Dense("tables of queries × keys were given", mask, any_numbers=any_numbers)


def check_heads(scores: Sequence[ScoreEncoding], heads: int, softcap: float | None = None) -> None:
    """Refuse encodings of other heads, and to cap scores that one forms by itself."""
    for encoding in scores:
        if encoding.heads != heads:
            raise ValueError(
                f"{type(encoding).__name__} was built for {encoding.heads} heads; the queries "
                f"have {heads}, on the second of [batch, heads, seq, head_dim]."
            )
        if softcap is not None and not isinstance(encoding, ScoreBias):
            name = type(encoding).__name__
            raise ValueError(f"softcap is {softcap} and {name} forms scores by itself.")
