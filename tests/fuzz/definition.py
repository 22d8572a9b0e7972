"""What a call of ``attention`` must give: by the definition, and for each document alone."""

from math import inf

import torch
from tests.fuzz.calls import AttentionCase, noise
from torch import Tensor

from posenc import Positional
from posenc.testing.reference import reference_attention


def expected(case: AttentionCase, content, given):
    """The result by the definition, each document and row without padding alone; its gradients."""
    positional = case.positional().double()
    wide = [x.detach().double().requires_grad_(x.requires_grad) for x in content]
    mask, added = given.get("attn_mask"), None
    if mask is not None:
        added = torch.where(mask, 0.0, -inf) if mask.dtype == torch.bool else mask
        added = added.double().expand(case.batch, case.heads, len(case.asked), case.k_len)
    rows = []
    for row in range(case.batch):  # whoever sees no padding is one for whom there is none
        numbers = case.numbers[row]
        parts = [
            ((numbers[case.asked] == n).nonzero()[:, 0],
             ((numbers == n) & case.real[row]).nonzero()[:, 0])
            for n in numbers[case.asked].unique()
        ]  # fmt: skip
        made = [_by_definition(case, wide, positional, given, row, *p, added) for p in parts]
        order = torch.cat([asked for asked, _ in parts]).argsort()
        rows.append(torch.cat(made, dim=2)[:, :, order])
    want = torch.cat(rows)
    learns = case.dtype == torch.float64
    grads = gradients(case, want, leaves(wide, positional, given)) if learns else None
    return want.detach(), grads


def _by_definition(case, content, positional, given, row, asked, real, added):
    """Some queries of a row and the keys that they may meet, as if there were no others."""
    query, key, value = (x[row : row + 1] for x in content)
    query = query[:, :, asked]
    if not len(real):
        return query.new_zeros(*query.shape[:-1], value.shape[-1]) + 0 * (query.sum() + key.sum())
    queries, keys = case.queries[row, asked], case.keys[row, real]
    distance = queries.double()[:, None] - keys
    seen = keys <= queries[:, None] if case.is_causal else distance == distance
    if case.window is not None:
        seen = seen & (distance.abs() < case.window)
    if added is not None:
        added = added[row : row + 1, :, asked][..., real]
    hidden = None if added is None else added == -inf
    states = {}
    if "k_hidden" in given:
        states = {"q_hidden": given["q_hidden"][row : row + 1, asked],
                  "k_hidden": given["k_hidden"][row : row + 1, real]}  # fmt: skip
    out = reference_attention(
        query, key[:, :, real], value[:, :, real],
        positional=positional,
        q_positions=queries,
        k_positions=keys,
        visible=lambda _, q, k: bool(seen[q, k]),
        added=None if added is None else added.masked_fill(hidden, -1e300),
        scale=case.scale,
        sinks=None if "sinks" not in given else given["sinks"].double(),
        softcap=case.softcap,
        **states,
    )  # fmt: skip
    if hidden is None:
        return out
    return out.masked_fill(~(seen & ~hidden).any(-1, keepdim=True), 0.0)


def leaves(content, positional: Positional, given) -> list[Tensor]:
    """All that learns."""
    sinks = [given["sinks"]] if "sinks" in given and given["sinks"].requires_grad else []
    return [*content, *sinks, *positional.parameters()]


def gradients(case: AttentionCase, out: Tensor, of: list[Tensor]) -> list[Tensor]:
    """Those of a random sum of the rows that mean something."""
    shown = case.real_queries[:, None, :, None]
    loss = (out * noise(case, *out.shape)).masked_fill(~shown, 0.0).sum()
    grads = torch.autograd.grad(loss, of, allow_unused=True)
    return [
        torch.zeros_like(leaf) if grad is None else grad
        for leaf, grad in zip(of, grads, strict=True)
    ]
