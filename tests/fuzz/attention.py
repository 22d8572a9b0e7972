"""Random calls of ``attention``, every backend of each held against the definition."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from math import exp, prod
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from tests.fuzz.encodings import (
    DIM,
    HEAD_DIM,
    biases,
    of_content,
    of_neighbors,
    queries_keys,
    remappings,
    seeded,
)
from tests.fuzz.tally import TALLY
from torch import Tensor

from posenc import (
    DAPE,
    DAPEv2,
    LogTemperature,
    Positional,
    QueryTemperature,
    RemappedRotary,
    Rotary,
    ScoreEncoding,
    Temperature,
    XPos,
    attention,
)
from posenc.backends.choice import BACKENDS
from posenc.backends.strided import wide_blocks
from posenc.encodings.base import working_dtype
from posenc.positions import over_padding
from posenc.testing.reference import documents_of, reference_attention

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 0.12, torch.float16: 0.02}
"""For numbers of the size of one, with biases and rotations that multiply a few roundings."""

SCALING = (Temperature, LogTemperature)
"""What multiplies scores by where the query stands."""

TOO_FAR = r"no int64|int64 does not hold"
LARGEST_LOG = 80.0  # of a factor of XPos that float32 holds

ASTRAY = (
    "positions run on where a document begins|padding lies between|Positions repeat between"
    "|attn_mask does not tell padding"
)

COUNTED = "would count tokens of the next document"

LONELY = 1000
"""A query farther than this from every key that it sees has scores that are rounded away."""

ENDS = (-(2**63), -(2**62), -1, 0, 3, 2**62, 2**63 - 1)
STARTS = (0, 0, 7, -5, 1000, 2**40)


@dataclass
class AttentionCase:
    """One call of attention, drawn; its fields say all that is needed to run it again.

    Attributes:
        relation: How queries stand to keys: ``"self"``, ``"last"`` of them, or ``"some"`` of them.
        chosen: Which keys the queries are.
        positions: ``[k_len]`` or ``[batch, k_len]``; ``None``: not given.
        omit: Whether the padding of queries is left out although they are some of the tokens.
        poisoned: Whether NaN stands where padding is.
    """

    seed: int
    dtype: torch.dtype
    batch: int
    kv_heads: int
    group: int
    k_len: int
    value_dim: int
    relation: str
    chosen: list[int]
    positions: list | None
    is_causal: bool
    window: int | None
    padding: list[list[bool]] | None
    documents: list[list[int]] | None
    as_cu_seqlens: bool
    mask: str
    mask_shape: tuple[int, ...]
    sunk: bool
    softcap: float | None
    layout: str
    builders: list = field(repr=False)
    score_builders: list = field(repr=False)
    remapping: Any
    scale: float | None
    omit: bool
    poisoned: bool = False
    compiled: bool = False

    @property
    def heads(self) -> int:
        return self.kv_heads * self.group

    def positional(self) -> Positional:
        """The encodings, built anew with the same parameters."""
        rotations = [seeded(build, self.seed + i) for i, build in enumerate(self.builders)]
        scores = [seeded(build, self.seed + 9 + i) for i, build in enumerate(self.score_builders)]
        if self.remapping is not None:
            rotations = [Rotary(HEAD_DIM)]
            scores.insert(0, RemappedRotary(self.heads, rotations[0], self.remapping))
        made = Positional(queries_keys=rotations, scores=scores)
        return made.double() if self.dtype == torch.float64 else made


@st.composite
def cases(draw) -> AttentionCase:
    """One call."""
    batch, kv_heads, group = (draw(st.integers(1, most)) for most in (3, 2, 3))
    k_len = draw(st.integers(1, 18))
    relation = draw(st.sampled_from(["self", "last", "some"]))
    order = list(range(k_len))
    if relation == "last":
        order = order[-draw(st.integers(1, k_len)) :]
    elif relation == "some":
        order = draw(st.lists(st.sampled_from(order), min_size=1, max_size=k_len + 2))
    documents = draw(st.none() | _documents(batch, k_len))
    alike = documents is not None and all(row == documents[0] for row in documents)
    distinct = documents is None or all(
        documents_of(row)[-1] + 1 == len(set(row)) for row in documents
    )
    if relation == "some" and not distinct:
        relation, order = "self", list(range(k_len))
    softcap = draw(st.sampled_from([None, None, None, 2.0]))
    heads = kv_heads * group
    kinds = (
        biases(heads)
        if softcap
        else st.one_of(
            *[biases(heads)] * 4, *[of_content(heads, kv_heads)] * 2, of_neighbors(heads)
        )
    )
    remapping = None if softcap else draw(st.none() | st.none() | st.none() | remappings())
    scores = draw(st.just([]) | st.lists(kinds, max_size=2) | st.lists(kinds, max_size=2))
    rotations = draw(st.lists(queries_keys(), max_size=2))
    anew = [build for build in scores if build().makes_anew]
    if anew:  # first, alone of its kind, and of what is not rotated before
        scores = [anew[0], *(build for build in scores if build not in anew)]
        rotations, remapping = [], None
    wide = any(build().changes_output for build in [*scores, *rotations])
    widths = [HEAD_DIM] if wide else [1, 3, HEAD_DIM]
    given = draw(st.none() | _positions(batch, k_len, wild=remapping is None))
    if documents is not None and draw(st.booleans()):
        given = [_begun_anew(row, draw(st.sampled_from([0, 50]))) for row in documents]
    if relation == "some" and given is None:
        given = [draw(st.sampled_from(STARTS)) + i for i in range(k_len)]
    padding = draw(st.none() | _padding(batch, k_len))
    mask = draw(st.sampled_from(["none", "none", "none", "bool", "float", "lowest"]))
    if padding is None or documents is None:  # a mask says not why, so most go without
        by_tokens = any(_goes_by_tokens(build()) for build in scores)
        mask = draw(st.sampled_from(["none", "none", mask])) if by_tokens else mask
    return AttentionCase(
        seed=draw(st.integers(0, 2**16)),
        dtype=draw(st.sampled_from([torch.float64] * 3 + list(TOLERANCE))),
        batch=batch,
        kv_heads=kv_heads,
        group=group,
        k_len=k_len,
        value_dim=draw(st.sampled_from(widths)),
        relation=relation,
        chosen=order,
        positions=given,
        is_causal=draw(st.booleans()),
        window=draw(st.none() | st.integers(1, 6)),
        padding=padding,
        documents=documents,
        as_cu_seqlens=alike and relation != "some" and draw(st.booleans()),
        mask=mask,
        mask_shape=tuple(draw(st.booleans()) for _ in range(draw(st.integers(1, 4)))),
        sunk=draw(st.sampled_from([False, False, False, True])),
        softcap=softcap,
        layout=draw(st.sampled_from(["contiguous", "seq_first", "sliced", "transposed"])),
        builders=rotations,
        score_builders=scores,
        remapping=remapping,
        scale=draw(st.sampled_from([None, None, None, 1.0, 0.1, 0.0, -0.7])),
        omit=draw(st.booleans()),
        poisoned=draw(st.booleans()),
    )


def _positions(batch: int, k_len: int, *, wild: bool) -> st.SearchStrategy[list]:
    def row(start: int, steps: list[int]) -> list[int]:
        found = [start]
        for step in steps[1:]:
            found.append(found[-1] + step)
        return found

    steps = st.sampled_from([1, 1, 1, 1, 0, 2, 5, -3] if wild else [1, 1, 1, 2])
    unbroken = st.just([1] * k_len)
    one = st.builds(
        row, st.sampled_from(STARTS),
        unbroken | st.lists(steps, min_size=k_len, max_size=k_len),
    )  # fmt: skip
    far = st.lists(st.sampled_from(ENDS), min_size=k_len, max_size=k_len)
    many = st.lists(one, min_size=batch, max_size=batch)
    return st.one_of(one, many, many, far) if wild else one | many


def _begun_anew(ids: list[int], apart: int) -> list[int]:
    """Each document counted from its own beginning, ``apart`` below that of the one before it."""
    numbers = documents_of(ids)
    return [i - numbers.index(number) - apart * number for i, number in enumerate(numbers)]


def _padding(batch: int, k_len: int) -> st.SearchStrategy[list[list[bool]]]:
    def ends(left: int, right: int) -> list[bool]:
        return [left <= i < k_len - right for i in range(k_len)]

    at_ends = st.builds(ends, st.integers(0, k_len), st.integers(0, 3))
    anywhere = st.lists(st.booleans(), min_size=k_len, max_size=k_len)
    return st.lists(st.one_of(at_ends, at_ends, anywhere), min_size=batch, max_size=batch)


def _documents(batch: int, k_len: int) -> st.SearchStrategy[list[list[int]]]:
    row = st.lists(st.integers(0, 3), min_size=k_len, max_size=k_len).map(sorted)
    jumping = st.lists(st.integers(0, 2), min_size=k_len, max_size=k_len)
    one = st.one_of(row, row, jumping)
    return st.lists(one, min_size=batch, max_size=batch) | one.map(lambda ids: [ids] * batch)


def check(case: AttentionCase) -> None:
    """Raise where a backend, or the choice among them, differs from the definition."""
    given, real_queries = arguments(case)
    content = content_of(case)
    _check_refusals(case, content, given)
    if must_refuse(case, content, given):
        return
    if reason := rounds(case, given, real_queries):
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
        compare(case, backend, made, want, want_grads, real_queries)
    if case.compiled:
        made = _run(case, content, given, None, compiled=True)
        assert made is not None
        TALLY.count("backends", "compiled")
        compare(case, "compiled", made, want, want_grads, real_queries)
    TALLY.count("cases", "attention")
    TALLY.count("relations", case.relation)
    if _reads_neighbors(case):
        TALLY.count("neighbors", "in one document" if case.documents is None else "in documents")


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
    if far and (_no_int64(case, of_real=True) or _refused(case, content, given)):
        _check_refused(case, content, given, TOO_FAR, (None,))
        TALLY.count("cases", "attention, refused in words")
        return True
    return False


def rounds(case: AttentionCase, given: dict[str, Any], real_queries: Tensor) -> str:
    """Why no backend need come near the definition in this dtype, or ''."""
    eps, grown = torch.finfo(case.dtype).eps, _largest_factor(case)
    if _asks_distances(case) and _loneliest(case, given, real_queries) > LONELY:
        return "of a query far from every key"
    if _largest_fed(case) * torch.finfo(working_dtype(case.dtype)).eps * 30 > TOLERANCE[case.dtype]:
        return "of a network fed with distances that round"
    if _hottest(case) * eps > TOLERANCE[case.dtype]:
        return "of rounding that temperatures multiply"
    if case.dtype == torch.float16 and grown > 100:
        return "out of the reach of float16"
    if _mixes(case) and TOLERANCE[case.dtype] < grown**2 * eps < float("inf"):
        return "of terms that cancel"
    if grown == float("inf"):
        return "of factors that float32 does not hold"
    return ""


def _check_refused(case, content, given, words, backends=(None, "explicit")) -> None:
    for backend in backends:
        with pytest.raises(ValueError, match=words):
            _run(case, content, given, backend)
    if case.compiled:  # a graph looks when it runs, and then has no error but this
        with pytest.raises((ValueError, RuntimeError), match=words):
            _run(case, content, given, None, compiled=True)


def _asks_distances(case: AttentionCase) -> bool:
    """Whether scores are encoded by how far apart tokens are, and not by where the query stands."""
    return any(not isinstance(each, SCALING) for each in case.positional().scores)


def _goes_by_tokens(encoding: ScoreEncoding) -> bool:
    """Whether it reads neighbors, or sums over the tokens between."""
    return not encoding.is_pairwise or getattr(encoding, "reads_neighbors", False)


def _reads_neighbors(case: AttentionCase) -> bool:
    return any(getattr(each, "reads_neighbors", False) for each in case.positional().scores)


def _reads_astray(case: AttentionCase) -> bool:
    """Whether an encoding would read, beside a token, padding or another document.

    Documents are told by positions that fall or repeat, and so is padding at their ends.
    """
    if not _reads_neighbors(case):
        return False
    keys = torch.arange(case.k_len) if case.positions is None else torch.tensor(case.positions)
    if case.padding is not None:
        keys = over_padding(keys, torch.tensor(case.padding))
    keys = keys.expand(case.batch, -1)
    ids = torch.zeros_like(keys) if case.documents is None else torch.tensor(case.documents)
    real = torch.ones_like(keys) if case.padding is None else torch.tensor(case.padding).long()
    rows = zip(keys.tolist(), ids.tolist(), real.expand(keys.shape).tolist(), strict=True)
    return any(_row_reads_astray(*row) for row in rows)


def _counting(case: AttentionCase) -> bool:
    """Whether an encoding sums over the tokens between."""
    return any(
        not each.is_pairwise and not getattr(each, "reads_neighbors", False)
        for each in case.positional().scores
    )


def _is_left_to_a_mask(case: AttentionCase, given: dict[str, Any]) -> bool:
    """Whether encodings go by the tokens, and a mask may hide some of them for any reason."""
    if "attn_mask" not in given or (case.padding is not None and case.documents is not None):
        return False
    return any(map(_goes_by_tokens, case.positional().scores))


def _row_reads_astray(keys: list[int], ids: list[int], real: list[int]) -> bool:
    steps = [(b > a) - (b < a) for a, b in pairwise(keys)]
    run_on = any(step > 0 and a != b for step, (a, b) in zip(steps, pairwise(ids), strict=True))
    moves = [list(group) for _, group in groupby(steps)]
    repeats = any(
        before[0] > 0 and between[0] == 0 and after[0] > 0
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
    if case.documents is None or not _counting(case):
        return False, False
    keys = torch.arange(case.k_len) if case.positions is None else torch.tensor(case.positions)
    places, own = keys.expand(case.batch, -1), keys
    if case.padding is not None:
        places = over_padding(keys, torch.tensor(case.padding)).expand(case.batch, -1)
    known = given.get("q_padding_mask")
    astray = touches = False
    for row, ids in enumerate(map(documents_of, case.documents)):
        at = places[row].tolist()
        stands = own.expand(case.batch, -1)[row].tolist()
        touches |= any(at[n] == at[n - 1] and ids[n] != ids[n - 1] for n in range(1, case.k_len))
        for number, query in enumerate(case.chosen):
            if known is not None and not known[row][number]:
                continue
            since = [n for n in range(case.k_len) if ids[n] == ids[query]][-1]
            for n in range(since + 1, case.k_len):
                if at[n] < at[n - 1]:
                    break
                astray |= at[n - 1] < at[n] <= stands[query]
    return astray, touches


def _query_padding(case: AttentionCase) -> list[list[bool]] | None:
    """Which queries are tokens, in each row; ``None`` where all of them count as such.

    Without ``q_padding_mask`` they do, as in cross-attention; but where they are the last of the
    keys' tokens, and padding holds NaN, so do theirs, and nothing is asked of their rows.
    """
    if case.padding is None:
        return None
    some = case.relation == "some"
    told = not _padding_is_omitted(case) if some else _is_placed_part(case)
    spoiled = case.poisoned and (not some or _are_keys(case))
    if not told and not spoiled:
        return None
    # Queries that are taken for the keys, since they stand where these do, have their padding.
    taken = case.chosen if told or not some else range(case.k_len)
    return [[row[i] for i in taken] for row in case.padding]


def _is_placed_part(case: AttentionCase) -> bool:
    """Whether the queries are the last, and stand at positions of their own."""
    part = len(case.chosen) < case.k_len
    return case.relation == "last" and case.positions is not None and part


def _padding_is_omitted(case: AttentionCase) -> bool:
    return case.omit and case.relation == "some"


def _no_int64(case: AttentionCase, *, of_real: bool = False) -> bool:
    """Whether a query and a key (none of them padding) are 2^63 apart: that is no int64."""
    if case.positions is None:
        return False
    places = torch.tensor(case.positions).expand(case.batch, case.k_len).tolist()
    for row, places_of in enumerate(places):
        padding = case.padding[row] if of_real and case.padding is not None else None
        keys = [at for i, at in enumerate(places_of) if padding is None or padding[i]]
        known = _query_padding(case) if of_real else None
        queries = [places_of[i] for q, i in enumerate(case.chosen) if not known or known[row][q]]
        if keys and queries and max(max(queries) - min(keys), max(keys) - min(queries)) >= 2**63:
            return True
    return False


def _loneliest(case: AttentionCase, given, real_queries: Tensor) -> float:
    """How far a query stands from the nearest of the keys that it sees.

    A bias of that distance is large for every key, and rounds what they differ by.
    """
    if case.positions is None:
        return 0.0
    to = torch.tensor(case.positions).expand(case.batch, case.k_len)[:, None, None]
    at = to[..., case.chosen].mT
    apart = (at.double() - to.double()).abs().expand(-1, case.heads, -1, -1)
    seen = torch.ones_like(apart, dtype=torch.bool)
    if case.is_causal:
        seen = seen & (to <= at)
    if case.window is not None:
        seen = seen & (apart < case.window)
    if case.padding is not None:
        seen = seen & torch.tensor(case.padding)[:, None, None]
    if case.documents is not None:
        ids = torch.tensor([documents_of(row) for row in case.documents])[:, None, None]
        seen = seen & (ids[..., case.chosen].mT == ids)
    if case.mask == "bool":
        seen = seen & given["attn_mask"]
    elif case.mask == "lowest":
        seen = seen & (given["attn_mask"] == 0)
    nearest = apart.where(seen, torch.inf).amin(-1)
    asked = real_queries[:, None] & nearest.isfinite()
    return nearest.where(asked, 0.0).max().item() if nearest.numel() else 0.0


def _refused(case: AttentionCase, content, given, words: str = TOO_FAR) -> bool:
    """Whether a call that need not be refused is: padding alone stands too far away in it."""
    try:
        _run(case, content, given, None)
    except ValueError as refusal:
        return re.search(words, str(refusal)) is not None
    return False


def _check_refusals(case: AttentionCase, content, given) -> None:
    """What nobody can know is refused."""
    less = {name: value for name, value in given.items() if name != "q_document_ids"}
    if case.relation == "some" and "document_ids" in given and not _are_keys(case):
        with pytest.raises(ValueError, match="q_document_ids"):
            _run(case, content, less, None)
        TALLY.count("must refuse", "documents of unknown queries")


def _are_keys(case: AttentionCase) -> bool:
    """Whether the queries stand exactly where the keys do, so that they are taken for them."""
    keys = torch.arange(case.k_len) if case.positions is None else torch.tensor(case.positions)
    chosen = keys[..., case.chosen]
    return chosen.shape == keys.shape and torch.equal(chosen, keys)


def _largest_fed(case: AttentionCase) -> float:
    """The largest bias that the network of a DAPE sees: what it makes of it may favor any distance.

    Then keys share a query by differences of large numbers, and gradients are sums of them.
    """
    fed = [each for each in case.positional().scores if isinstance(each, DAPE | DAPEv2)]
    if fed and _no_int64(case):
        return float("inf")
    keys = torch.arange(case.k_len) if case.positions is None else torch.tensor(case.positions)
    queries = keys[..., case.chosen]
    tables = [each.bias.table(queries, keys, dtype=torch.float64) for each in fed]
    return max((table.abs().max().item() for table in tables if table.numel()), default=0.0)


def _hottest(case: AttentionCase) -> float:
    """The largest factor of a score, with which temperatures multiply what rotations rounded."""
    keys = torch.arange(case.k_len) if case.positions is None else torch.tensor(case.positions)
    queries, positional = keys[..., case.chosen], case.positional()
    tables = [
        *(each.table(queries, keys) for each in positional.scores if isinstance(each, SCALING)),
        *(e.table(queries) for e in positional.queries_keys if isinstance(e, QueryTemperature)),
    ]
    return prod(table.abs().max().item() for table in tables if table.numel())


def _mixes(case: AttentionCase) -> bool:
    """Whether channels that an XPos scales differently are mixed by another rotation behind it.

    Then products have terms of the largest factor squared, which cancel but for their rounding.
    """
    encodings = list(case.positional().queries_keys)
    return len(encodings) > 1 and any(isinstance(each, XPos) for each in encodings)


def _largest_factor(case: AttentionCase, *, of_real: bool = False) -> float:
    """The largest factor of an XPos at these positions; infinite where floats have none."""
    places = torch.arange(case.k_len) if case.positions is None else torch.tensor(case.positions)
    if of_real and case.padding is not None:  # padding may be taken out of the row before
        real = torch.tensor(case.padding)
        places = places.expand(real.shape).where(real, 0)
    farthest, grown = max(abs(int(end)) for end in places.aminmax()), 1.0
    for encoding in case.positional().queries_keys:
        if isinstance(encoding, XPos):
            logarithm = farthest * max(abs(rate) for rate in encoding.rates)
            if logarithm > LARGEST_LOG:
                return float("inf")
            grown *= exp(logarithm)
    return grown


def compare(case, backend, made, want, want_grads, real_queries) -> None:
    out, grads = made
    shown = real_queries[:, None, :, None]
    tolerance = TOLERANCE[case.dtype] * (1 + want.abs().max().item())
    off = ((out.double() - want) * shown).abs().max().item() if out.numel() else 0.0
    assert off <= tolerance, f"{backend}: off by {off} > {tolerance} in\n{case}"
    if grads is None:
        return
    # Gradients sum terms as large as the factors of an XPos, which cancel where a key takes all.
    near = 1e-8 + 4 * torch.finfo(torch.float64).eps * _largest_factor(case, of_real=True)
    for index, (got, meant) in enumerate(zip(grads, want_grads, strict=True)):
        size = 1 + meant.abs().max().item() if meant.numel() else 1.0
        off = (got - meant).abs().max().item() if meant.numel() else 0.0
        assert off <= near * size, f"{backend}: gradient {index} is off by {off} in\n{case}"


def _run(case, content, given, backend, *, compiled=False):
    """The result and its gradients, or ``None`` where the backend says that it cannot serve."""
    positional = case.positional()
    learns = case.dtype == torch.float64 and backend != "flex"
    content = content if learns else [x.detach() for x in content]
    used = _poisoned(case, content) if case.poisoned else content
    if case.poisoned:
        given = given | _poisoned_states(case, given)
    leaves = _leaves(content, positional, given) if learns else []
    call = attention
    if compiled:
        torch.compiler.reset()
        call = torch.compile(attention, backend="aot_eager", fullgraph=True)
    with (
        warnings.catch_warnings(),
        torch.set_grad_enabled(learns),
        _interpreted_flex(),
        small_blocks(case.seed),
    ):
        warnings.simplefilter("ignore")
        try:
            out = call(
                *laid_out(used, case.layout), positional=positional, scale=case.scale,
                backend=backend, **given,
            )  # fmt: skip
        except ValueError as refusal:
            if "cannot serve" in str(refusal):
                return None
            raise
    if not learns:
        return out, None
    return out, _gradients(case, out, leaves)


@contextmanager
def small_blocks(number: int) -> Iterator[None]:
    """Blocks so small that a few tokens take the ways that thousands take."""
    chosen = {"FEWEST_ROWS": 1 + number % 4, "FEWEST_KEYS": 1 + number % 3,
              "MANY_ROWS": 4 + number % 5, "ROWS": 1 + number % 4}  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        for name, size in chosen.items() if number % 2 else ():
            patched.setattr(wide_blocks, name, size)
        yield


@contextmanager
def _interpreted_flex() -> Iterator[None]:
    """FlexAttention without a compilation a call, where torch has a switch for it."""
    from torch.nn.attention import flex_attention

    name = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
    before = getattr(flex_attention, name, None)
    if before is not None:
        setattr(flex_attention, name, True)
    try:
        yield
    finally:
        if before is not None:
            setattr(flex_attention, name, before)


def expected(case: AttentionCase, content, given):
    positional = case.positional()
    wide = [x.detach().double().requires_grad_(x.requires_grad) for x in content]
    everywhere = torch.arange(case.k_len)
    keys = everywhere if case.positions is None else torch.tensor(case.positions)
    queries = keys[..., case.chosen]

    def visible(row: int, q: int, k: int) -> bool:
        at, to = (_at(p, row, i) for p, i in ((queries, q), (keys, k)))
        return (not case.is_causal or to <= at) and (
            case.window is None or abs(at - to) < case.window
        )

    mask, added = given.get("attn_mask"), None
    if mask is not None:
        added = torch.where(mask, 0.0, -torch.inf) if mask.dtype == torch.bool else mask
        added = added.double().expand(case.batch, case.heads, len(case.chosen), case.k_len)
    rows = []
    for row in range(case.batch):  # whoever sees no padding is one for whom there is none
        parts = _documents_alone(case, row)
        made = [
            _by_definition(
                case, wide, positional, given, row, asked, real, (queries, keys),
                lambda _, q, k, row=row, asked=asked, real=real: visible(row, asked[q], real[k]),
                added,
            )
            for asked, real in parts
        ]  # fmt: skip
        order = torch.tensor([q for asked, _ in parts for q in asked]).argsort()
        rows.append(torch.cat(made, dim=2)[:, :, order])
    want = torch.cat(rows)
    grads = None
    if case.dtype == torch.float64:
        grads = _gradients(case, want, _leaves(wide, positional, given))
    return want.detach(), grads


def _documents_alone(case: AttentionCase, row: int) -> list[tuple[list[int], list[int]]]:
    """The queries and the real keys of each document of a row, or of the row if it is one."""
    number = [0] * case.k_len if case.documents is None else documents_of(case.documents[row])
    real = [True] * case.k_len if case.padding is None else case.padding[row]
    parts = [
        (
            [q for q, i in enumerate(case.chosen) if number[i] == document],
            [k for k in range(case.k_len) if real[k] and number[k] == document],
        )
        for document in range(number[-1] + 1)
    ]
    return [part for part in parts if part[0]]


def _by_definition(case, content, positional, given, row, asked, real, places, visible, added):
    """Some queries of a row and the keys that they may meet, as if there were no others."""
    query, key, value = (x[row : row + 1] for x in content)
    query = query[:, :, asked]
    if not real:
        return query.new_zeros(*query.shape[:-1], value.shape[-1]) + 0 * (query.sum() + key.sum())
    queries, keys = (p if p.ndim == 1 else p[row] for p in places)
    if added is not None:
        added = added[row : row + 1, :, asked][..., real]
    hidden = None if added is None else added == -torch.inf
    states = {}
    if "k_hidden" in given:
        states = {
            "q_hidden": given["q_hidden"][row : row + 1, asked],
            "k_hidden": given["k_hidden"][row : row + 1, real],
        }
    out = reference_attention(
        query, key[:, :, real], value[:, :, real],
        positional=positional.double(),
        q_positions=queries[asked],
        k_positions=keys[real],
        visible=visible,
        added=None if added is None else added.masked_fill(hidden, -1e300),
        scale=case.scale,
        sinks=None if "sinks" not in given else given["sinks"].double(),
        softcap=case.softcap,
        **states,
    )  # fmt: skip
    if hidden is None:
        return out
    seen = torch.tensor([[visible(0, q, k) for k in range(len(real))] for q in range(len(asked))])
    # A row that may see nothing is zero.
    return out.masked_fill(~(seen & ~hidden).any(-1, keepdim=True), 0.0)


def _at(positions: Tensor, row: int, index: int) -> int:
    return int(positions[index] if positions.ndim == 1 else positions[row, index])


def _leaves(content, positional: Positional, given) -> list[Tensor]:
    sinks = [given["sinks"]] if "sinks" in given and given["sinks"].requires_grad else []
    return [*content, *sinks, *positional.parameters()]


def _gradients(case: AttentionCase, out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(case.seed)
    weights = torch.randn(out.shape, generator=generator, dtype=torch.float64)
    shown = _real_queries(case)[:, None, :, None]
    loss = (out * weights).masked_fill(~shown, 0.0).sum()
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [
        torch.zeros_like(leaf) if grad is None else grad
        for leaf, grad in zip(leaves, grads, strict=True)
    ]


def _real_queries(case: AttentionCase) -> Tensor:
    """The rows whose result means something: of queries that are not known to be padding."""
    known = _query_padding(case)
    if known is None:
        return torch.ones(case.batch, len(case.chosen), dtype=torch.bool)
    return torch.tensor(known)


def content_of(case: AttentionCase) -> list[Tensor]:
    generator = torch.Generator().manual_seed(case.seed)
    shapes = [
        (case.heads, len(case.chosen), HEAD_DIM),
        (case.kv_heads, case.k_len, HEAD_DIM),
        (case.kv_heads, case.k_len, case.value_dim),
    ]
    made = [
        torch.randn(case.batch, *shape, generator=generator, dtype=torch.float64)
        for shape in shapes
    ]
    return [x.to(case.dtype).requires_grad_(case.dtype == torch.float64) for x in made]


def _poisoned(case: AttentionCase, content: list[Tensor]) -> list[Tensor]:
    """NaN wherever padding is known to be; gradients flow to what is left."""
    if case.padding is None:
        return content
    real = torch.tensor(case.padding)
    sides = (_real_queries(case), real, real)
    return [
        torch.where(side[:, None, :, None], x, torch.nan)
        for x, side in zip(content, sides, strict=True)
    ]


def _poisoned_states(case: AttentionCase, given) -> dict[str, Tensor]:
    """The hidden states, with NaN there too."""
    if case.padding is None or "k_hidden" not in given:
        return {}
    sides = {"q_hidden": _real_queries(case), "k_hidden": torch.tensor(case.padding)}
    return {
        name: torch.where(side[..., None], given[name], torch.nan) for name, side in sides.items()
    }


def laid_out(content: list[Tensor], layout: str) -> list[Tensor]:
    """The same numbers in other memory."""
    if layout == "seq_first":
        return [x.transpose(1, 2).contiguous().transpose(1, 2) for x in content]
    if layout == "sliced":
        return [torch.cat((x, x, x), dim=-1)[..., x.shape[-1] : 2 * x.shape[-1]] for x in content]
    if layout == "transposed":
        return [x.mT.contiguous().mT for x in content]
    return list(content)


def arguments(case: AttentionCase) -> tuple[dict[str, Any], Tensor]:
    """Keyword arguments of the call, and which of its rows mean something."""
    given: dict[str, Any] = {"is_causal": case.is_causal, "window": case.window}
    if case.positions is not None:
        keys = torch.tensor(case.positions)
        given |= {"q_positions": keys[..., case.chosen], "k_positions": keys}
        if case.relation == "self":
            given["q_positions"] = keys
    some = case.relation == "some" or _is_placed_part(case)
    if case.padding is not None:
        given["padding_mask"] = torch.tensor(case.padding)
        if some and not _padding_is_omitted(case):
            given["q_padding_mask"] = given["padding_mask"][:, case.chosen]
    if case.documents is not None:
        ids = torch.tensor([documents_of(row) for row in case.documents])
        if case.as_cu_seqlens and not some:
            counts = torch.bincount(ids[0])
            ends = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
            given["cu_seqlens"] = ends
        else:
            given["document_ids"] = ids if some else torch.tensor(case.documents)
            if some:
                given["q_document_ids"] = ids[:, case.chosen]
    if case.mask != "none":
        full = (case.batch, case.heads, len(case.chosen), case.k_len)[-len(case.mask_shape) :]
        shape = [size if whole else 1 for size, whole in zip(full, case.mask_shape, strict=True)]
        generator = torch.Generator().manual_seed(case.seed + 1)
        mask = torch.randn(shape, generator=generator, dtype=torch.float64)
        given["attn_mask"] = mask > -0.5 if case.mask == "bool" else mask.to(case.dtype)
        if case.mask == "lowest":  # as many a model hides keys
            narrow = torch.float32 if case.dtype == torch.float64 else case.dtype
            lowest = torch.full((), torch.finfo(narrow).min, dtype=case.dtype)
            given["attn_mask"] = torch.where(mask > -0.5, torch.zeros_like(lowest), lowest)
    if case.sunk:
        sinks = torch.linspace(-1, 2, case.heads, dtype=torch.float64)
        given["sinks"] = sinks.to(case.dtype).requires_grad_(case.dtype == torch.float64)
    if case.softcap:
        given["softcap"] = case.softcap
    if any(each.reads_hidden for each in case.positional().scores):
        given |= _hidden_states(case)
    return given, _real_queries(case)


def _hidden_states(case: AttentionCase) -> dict[str, Tensor]:
    """One vector a token, for the encodings that read it."""
    generator = torch.Generator().manual_seed(case.seed + 2)
    keys = torch.randn(case.batch, case.k_len, DIM, generator=generator, dtype=torch.float64)
    keys = keys.to(case.dtype)
    return {"q_hidden": keys[:, case.chosen], "k_hidden": keys}
