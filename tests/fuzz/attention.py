"""Random calls of ``attention``, every backend of each held against the definition."""

import re
import warnings
from itertools import groupby, pairwise
from math import exp, inf, prod
from typing import Any

import pytest
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
from tests.fuzz.tally import TALLY
from torch import Tensor

from posenc import (
    DAPE,
    DAPEv2,
    LogTemperature,
    QueryTemperature,
    Temperature,
    XPos,
    attention,
)
from posenc.backends.choice import BACKENDS
from posenc.encodings.base import working_dtype
from posenc.positions import over_padding

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 0.12, torch.float16: 0.02}
"""For numbers of the size of one, with biases and rotations that multiply a few roundings."""

SCALING = (Temperature, LogTemperature)
"""What multiplies scores by where the query stands."""

TOO_FAR = r"no int64|int64 does not hold"
ASTRAY = (
    "positions run on where a document begins|padding lies between|Positions repeat between"
    "|attn_mask does not tell padding"
)
COUNTED = "would count tokens of the next document"

LARGEST_LOG = 80.0  # of a factor of XPos that float32 holds
LONELY = 1000
"""A query farther than this from every key that it sees has scores that are rounded away."""


def check(case: AttentionCase) -> None:
    """Raise where a backend, or the choice among them, differs from the definition."""
    given, content = arguments(case), content_of(case)
    if case.relation == "some" and "document_ids" in given and not case.are_keys:
        less = {name: value for name, value in given.items() if name != "q_document_ids"}
        with pytest.raises(ValueError, match="q_document_ids"):  # which nobody can know
            _run(case, content, less, None)
        TALLY.count("must refuse", "documents of unknown queries")
    if must_refuse(case, content, given):
        return
    if reason := rounds(case, given):
        TALLY.count("cases", f"attention, {reason}")
        return
    far = _asks_distances(case) and _no_int64(case)
    want, want_grads = expected(case, content, given)
    for backend in (None,) if far else (None, *BACKENDS):
        made = _run(case, content, given, backend)
        if made is None:
            TALLY.count("refused by", str(backend))
            assert backend not in (None, "explicit"), f"{backend} refused {case}"
            continue
        TALLY.count("backends", "chosen" if backend is None else backend)
        compare(case, backend, made, want, want_grads)
    if case.compiled:
        made = _run(case, content, given, None, compiled=True)
        assert made is not None
        TALLY.count("backends", "compiled")
        compare(case, "compiled", made, want, want_grads)
    TALLY.count("cases", "attention")
    TALLY.count("relations", case.relation)
    if any(map(_reads_neighbors, case.positional().scores)):
        TALLY.count("neighbors", "in one document" if case.documents is None else "in documents")


# What must be refused.


def must_refuse(case: AttentionCase, content: list[Tensor], given: dict[str, Any]) -> bool:
    """Whether the call must be refused, or may be and is; raise where it is not refused."""
    if _reads_astray(case) or _is_left_to_a_mask(case, given):
        _check_refused(case, content, given, f"{ASTRAY}|{TOO_FAR}")
        TALLY.count("must refuse", "neighbors that are none")
        return True
    astray, touches = _counts_astray(case, given)
    if astray or (touches and _refused(case, content, given, COUNTED)):
        _check_refused(case, content, given, f"{COUNTED}|{TOO_FAR}")
        TALLY.count("must refuse", "tokens between of another document")
        return True
    far = _asks_distances(case) and _no_int64(case)
    if far and (_no_int64(case, of_real=True) or _refused(case, content, given, TOO_FAR)):
        _check_refused(case, content, given, TOO_FAR, (None,))
        TALLY.count("cases", "attention, refused in words")
        return True
    return False


def _check_refused(case, content, given, words, backends=(None, "explicit")) -> None:
    for backend in backends:
        with pytest.raises(ValueError, match=words):
            _run(case, content, given, backend)
    if case.compiled:  # a graph looks when it runs, and then has no error but this
        with pytest.raises((ValueError, RuntimeError), match=words):
            _run(case, content, given, None, compiled=True)


def _refused(case: AttentionCase, content, given, words: str) -> bool:
    """Whether a call that need not be refused is."""
    try:
        _run(case, content, given, None)
    except ValueError as refusal:
        return re.search(words, str(refusal)) is not None
    return False


def _asks_distances(case: AttentionCase) -> bool:
    """Whether scores are encoded by how far apart tokens are, and not by where the query stands."""
    return any(not isinstance(each, SCALING) for each in case.positional().scores)


def _reads_neighbors(encoding) -> bool:
    return getattr(encoding, "reads_neighbors", False)


def _is_left_to_a_mask(case: AttentionCase, given: dict[str, Any]) -> bool:
    """Whether encodings go by the tokens, and a mask may hide some of them for any reason."""
    if "attn_mask" not in given or (case.padding is not None and case.documents is not None):
        return False
    return any(map(goes_by_tokens, case.positional().scores))


def _reads_astray(case: AttentionCase) -> bool:
    """Whether an encoding would read, beside a token, padding or another document.

    Documents are told by positions that fall or repeat, and so is padding at their ends.
    """
    if not any(map(_reads_neighbors, case.positional().scores)):
        return False
    keys = case.keys if case.padding is None else over_padding(case.placed, case.real)
    ids = case.numbers if case.documents is None else torch.tensor(case.documents)
    rows = (keys.expand(case.batch, -1).tolist(), ids.tolist(), case.real.tolist())
    return any(_row_reads_astray(*row) for row in zip(*rows, strict=True))


def _row_reads_astray(keys: list[int], ids: list[int], real: list[bool]) -> bool:
    steps = [(b > a) - (b < a) for a, b in pairwise(keys)]
    run_on = any(step > 0 and a != b for step, (a, b) in zip(steps, pairwise(ids), strict=True))
    moves = [step for step, _ in groupby(steps)]
    repeats = any(
        before > 0 and between == 0 and after > 0
        for before, between, after in zip(moves, moves[1:], moves[2:], strict=False)
    )
    told = [place for place, one in enumerate(real) if one]
    padded = any(b > a + 1 and keys[b] > keys[a] and ids[a] == ids[b] for a, b in pairwise(told))
    beside = any(
        keys[n] > keys[n - 1] and ids[n] == ids[n - 1] and real[n] != real[n - 1]
        for n in range(1, len(keys))
    )
    return run_on or repeats or padded or beside


def _counts_astray(case: AttentionCase, given: dict[str, Any]) -> tuple[bool, bool]:
    """Whether an encoding would count tokens of another document, and whether it might seem so.

    It takes a fall of positions for the end of a document, and counts tokens that stand farther on
    than the one before them and not farther than the query.
    """
    counting = (not each.is_pairwise and not _reads_neighbors(each)
                for each in case.positional().scores)  # fmt: skip
    if case.documents is None or not any(counting):
        return False, False
    places = case.keys if case.padding is None else over_padding(case.placed, case.real)
    known = given.get("q_padding_mask")
    astray = touches = False
    rows = (places.expand(case.batch, -1).tolist(), case.keys.tolist(), case.numbers.tolist())
    for row, (at, stands, ids) in enumerate(zip(*rows, strict=True)):
        touches |= any(at[n] == at[n - 1] and ids[n] != ids[n - 1] for n in range(1, case.k_len))
        for number, query in enumerate(case.asked):
            if known is not None and not known[row][number]:
                continue
            since = [n for n in range(case.k_len) if ids[n] == ids[query]][-1]
            for n in range(since + 1, case.k_len):
                if at[n] < at[n - 1]:
                    break
                astray |= at[n - 1] < at[n] <= stands[query]
    return astray, touches


def _no_int64(case: AttentionCase, *, of_real: bool = False) -> bool:
    """Whether a query and a key (none of them padding) are 2^63 apart: that is no int64."""
    real = case.real if of_real else case.real | True
    asked = case.real_queries if of_real else case.real_queries | True
    for row in range(case.batch):
        keys = case.keys[row][real[row]].tolist()
        queries = case.queries[row][asked[row]].tolist()
        if keys and queries and max(max(queries) - min(keys), max(keys) - min(queries)) >= 2**63:
            return True
    return False


# What rounds too much to be compared.


def rounds(case: AttentionCase, given: dict[str, Any]) -> str:
    """Why no backend need come near the definition in this dtype, or ''."""
    eps, grown, near = torch.finfo(case.dtype).eps, _largest_factor(case), TOLERANCE[case.dtype]
    if _asks_distances(case) and _loneliest(case, given) > LONELY:
        return "of a query far from every key"
    if _largest_fed(case) * torch.finfo(working_dtype(case.dtype)).eps * 30 > near:
        return "of a network fed with distances that round"
    if _hottest(case) * eps > near:
        return "of rounding that temperatures multiply"
    if case.dtype == torch.float16 and grown > 100:
        return "out of the reach of float16"
    encodings = list(case.positional().queries_keys)
    mixes = len(encodings) > 1 and any(isinstance(each, XPos) for each in encodings)
    if mixes and near < grown**2 * eps < inf:  # behind XPos another rotation mixes its channels
        return "of terms that cancel"
    return "of factors that float32 does not hold" if grown == inf else ""


def _loneliest(case: AttentionCase, given) -> float:
    """How far a query stands from the nearest of the keys that it sees.

    A bias of that distance is large for every key, and rounds what they differ by.
    """
    to, at = case.keys[:, None, None], case.queries[:, None, :, None]
    apart = (at.double() - to.double()).abs().expand(-1, case.heads, -1, -1)
    seen = case.real[:, None, None].expand(apart.shape)
    if case.is_causal:
        seen = seen & (to <= at)
    if case.window is not None:
        seen = seen & (apart < case.window)
    ids = case.numbers[:, None, None]
    seen = seen & (ids[..., case.asked].mT == ids)
    if case.mask == "bool":
        seen = seen & given["attn_mask"]
    elif case.mask == "lowest":
        seen = seen & (given["attn_mask"] == 0)
    nearest = apart.where(seen, inf).amin(-1)
    shown = case.real_queries[:, None] & nearest.isfinite()
    return _largest([nearest.where(shown, 0.0)])


def _largest(tables: list[Tensor]) -> float:
    return max((table.abs().max().item() for table in tables if table.numel()), default=0.0)


def _largest_fed(case: AttentionCase) -> float:
    """The largest bias that the network of a DAPE sees: what it makes of it may favor any distance.

    Then keys share a query by differences of large numbers, and gradients are sums of them.
    """
    fed = [each for each in case.positional().scores if isinstance(each, DAPE | DAPEv2)]
    if fed and _no_int64(case):
        return inf
    return _largest([e.bias.table(case.queries, case.keys, dtype=torch.float64) for e in fed])


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
