"""Random calls of ``attention``, every backend of each held against the definition."""

import re
import warnings
from math import exp, inf, prod
from typing import Any

import torch
from tests.fuzz.blocks import small_blocks
from tests.fuzz.calls import (
    AttentionCase,
    arguments,
    content_of,
    goes_by_tokens,
    laid_out,
    poisoned,
)
from tests.fuzz.definition import expected, gradients, leaves
from torch import Tensor

from posenc import (
    LogTemperature,
    QueryTemperature,
    Temperature,
    XPos,
    attention,
)
from posenc.backends.choice import BACKENDS

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 0.12, torch.float16: 0.02}
"""For numbers of the size of one, with biases and rotations that multiply a few roundings."""

SCALING = (Temperature, LogTemperature)
"""What multiplies scores by where the query stands."""

ASTRAY = (
    "positions run on where a document begins|padding lies between|Positions repeat between"
    "|attn_mask does not tell padding|would count tokens of the next document"
)
"""What encodings that count tokens, or read neighbors, say of rows that they would misread."""

LARGEST_LOG = 80.0  # of a factor of XPos that float32 holds


def check(case: AttentionCase) -> None:
    """Raise where a backend, or the choice among them, differs from the definition."""
    given, content = arguments(case), content_of(case)
    if left_out(case, content, given):
        return
    want, want_grads = expected(case, content, given)
    for backend in (None, *BACKENDS):
        made = _run(case, content, given, backend)
        if made is None:
            assert backend not in (None, "explicit"), f"{backend} refused {case}"
            continue
        compare(case, backend, made, want, want_grads)
    if case.compiled:
        made = _run(case, content, given, None, compiled=True)
        assert made is not None
        compare(case, "compiled", made, want, want_grads)


def left_out(case: AttentionCase, content: list[Tensor], given: dict[str, Any]) -> bool:
    """Whether the call rounds too much, or encodings that go by tokens refuse where these stand."""
    if rounds(case):
        return True
    if not any(map(goes_by_tokens, case.positional().scores)):
        return False
    try:
        _run(case, content, given, None)
    except ValueError as refusal:
        if re.search(ASTRAY, str(refusal)):
            return True
        raise
    return False


# What rounds too much to be compared.


def rounds(case: AttentionCase) -> bool:
    """Whether no backend need come near the definition in this dtype."""
    eps, grown, near = torch.finfo(case.dtype).eps, _largest_factor(case), TOLERANCE[case.dtype]
    if _hottest(case) * eps > near or grown == inf or (case.dtype == torch.float16 and grown > 100):
        return True
    encodings = list(case.positional().queries_keys)
    mixes = len(encodings) > 1 and any(isinstance(each, XPos) for each in encodings)
    # Behind XPos another rotation mixes its channels, and terms cancel.
    return mixes and near < grown**2 * eps


def _largest(tables: list[Tensor]) -> float:
    return max((table.abs().max().item() for table in tables if table.numel()), default=0.0)


def _hottest(case: AttentionCase) -> float:
    """The largest factor of a score, with which temperatures multiply what rotations rounded."""
    keys, queries, positional = case.keys, case.queries, case.positional()
    tables = [
        *(each.table(queries, keys) for each in positional.scores if isinstance(each, SCALING)),
        *(e.table(queries) for e in positional.queries_keys if isinstance(e, QueryTemperature)),
    ]
    return prod(_largest([table]) for table in tables if table.numel())


def _largest_factor(case: AttentionCase, *, of_real: bool = False) -> float:
    """The largest factor of an XPos at these positions; infinite where floats have none."""
    # padding may be taken out of the row before
    places = case.keys.where(case.real, 0) if of_real else case.keys
    farthest, grown = max(abs(int(end)) for end in places.aminmax()), 1.0
    for encoding in case.positional().queries_keys:
        if isinstance(encoding, XPos):
            logarithm = farthest * max(abs(rate) for rate in encoding.rates)
            if logarithm > LARGEST_LOG:
                return inf
            grown *= exp(logarithm)
    return grown


# The call, and the definition.


def compare(case: AttentionCase, backend: Any, made, want: Tensor, want_grads) -> None:
    out, grads = made
    shown = case.real_queries[:, None, :, None]
    tolerance = TOLERANCE[case.dtype] * (1 + want.abs().max().item())
    off = _largest([(out.double() - want) * shown])
    assert off <= tolerance, f"{backend}: off by {off} > {tolerance} in\n{case}"
    if grads is None:
        return
    # Gradients sum terms as large as the factors of an XPos, which cancel where a key takes all.
    near = 1e-8 + 4 * torch.finfo(torch.float64).eps * _largest_factor(case, of_real=True)
    for index, (got, meant) in enumerate(zip(grads, want_grads, strict=True)):
        off = _largest([got - meant])
        most = near * (1 + _largest([meant]))
        assert off <= most, f"{backend}: gradient {index} is off by {off} in\n{case}"


def _run(case, content, given, backend, *, compiled=False):
    """The result and its gradients, or ``None`` where the backend says that it cannot serve."""
    positional = case.positional()
    learns = case.dtype == torch.float64 and backend != "flex"
    content = content if learns else [x.detach() for x in content]
    used, given = poisoned(case, content, given)
    of = leaves(content, positional, given) if learns else []
    call = attention
    if compiled:
        torch.compiler.reset()
        call = torch.compile(attention, backend="aot_eager", fullgraph=True)
    with (
        warnings.catch_warnings(action="ignore"),
        torch.set_grad_enabled(learns),
        small_blocks(case.seed),
    ):
        try:
            out = call(
                *laid_out(used, case.layout), positional=positional, scale=case.scale,
                backend=backend, **given,
            )  # fmt: skip
        except ValueError as refusal:
            if "cannot serve" in str(refusal):
                return None
            raise
    return out, gradients(case, out, of) if learns else None
