"""Random calls of ``attention``: their fields, their arguments and their content."""

from dataclasses import dataclass, field
from typing import Any

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
from torch import Tensor

from posenc import Positional, RemappedRotary, Rotary, ScoreEncoding

DTYPES = (torch.float64, torch.float64, torch.float64, torch.float64, torch.float32,
          torch.bfloat16, torch.float16)  # fmt: skip
STARTS = (0, 0, 7, -5, 1000, 2**40)


@dataclass
class AttentionCase:
    """One call of attention, drawn; its fields say all that is needed to run it again.

    Attributes:
        relation: How queries stand to keys: ``"self"``, ``"last"`` of them, or ``"some"`` of them.
        chosen: Which keys the queries are; all if not given.
        positions: ``[k_len]`` or ``[batch, k_len]``; ``None``: not given.
        omit: Whether the padding of queries is left out although they are some of the tokens.
        poisoned: Whether NaN stands where padding is.
    """

    k_len: int
    seed: int = 0
    dtype: torch.dtype = torch.float64
    batch: int = 1
    kv_heads: int = 1
    group: int = 1
    value_dim: int = 1
    relation: str = "self"
    chosen: list[int] | None = None
    positions: list | None = None
    is_causal: bool = False
    window: int | None = None
    padding: list[list[bool]] | None = None
    documents: list[list[int]] | None = None
    as_cu_seqlens: bool = False
    mask: str = "none"
    mask_shape: tuple[int, ...] = (False,)
    sunk: bool = False
    softcap: float | None = None
    layout: str = "contiguous"
    builders: list = field(default_factory=list, repr=False)
    score_builders: list = field(default_factory=list, repr=False)
    remapping: Any = None
    scale: float | None = None
    omit: bool = False
    poisoned: bool = False
    compiled: bool = False

    @property
    def heads(self) -> int:
        return self.kv_heads * self.group

    @property
    def asked(self) -> list[int]:
        """Which keys the queries are."""
        return list(range(self.k_len)) if self.chosen is None else self.chosen

    @property
    def placed(self) -> Tensor:
        """The positions of the keys, as they are given or as they are meant."""
        return torch.arange(self.k_len) if self.positions is None else torch.tensor(self.positions)

    @property
    def keys(self) -> Tensor:
        """The same, ``[batch, k_len]``."""
        return self.placed.expand(self.batch, -1)

    @property
    def queries(self) -> Tensor:
        """Those of the queries, ``[batch, q_len]``."""
        return self.keys[:, self.asked]

    @property
    def real(self) -> Tensor:
        """Which keys are no padding, ``[batch, k_len]``."""
        every = torch.ones(self.batch, self.k_len, dtype=torch.bool)
        return every if self.padding is None else torch.tensor(self.padding)

    @property
    def numbers(self) -> Tensor:
        """The document of each key, ``[batch, k_len]``."""
        rows = self.documents or [[0] * self.k_len] * self.batch
        return torch.tensor([documents_of(row) for row in rows], dtype=torch.int64)

    @property
    def are_keys(self) -> bool:
        """Whether the queries stand exactly where the keys do, so that they are taken for them."""
        return self.queries.shape == self.keys.shape and torch.equal(self.queries, self.keys)

    @property
    def is_placed_part(self) -> bool:
        """Whether the queries are the last, and stand at positions of their own."""
        part = len(self.asked) < self.k_len
        return self.relation == "last" and self.positions is not None and part

    @property
    def query_padding(self) -> Tensor | None:
        """Which queries are tokens, in each row; ``None`` where all of them count as such.

        Without ``q_padding_mask`` they do, as in cross-attention; but where they are the last of
        the keys' tokens, and padding holds NaN, so do theirs, and nothing is asked of their rows.
        """
        some = self.relation == "some"
        told = not self.omit if some else self.is_placed_part
        spoiled = self.poisoned and (not some or self.are_keys)
        if self.padding is None or not (told or spoiled):
            return None
        # Queries that are taken for the keys, since they stand where these do, have their padding.
        return self.real[:, self.asked] if told or not some else self.real

    @property
    def real_queries(self) -> Tensor:
        """The rows whose result means something: of queries that are not known to be padding."""
        every = torch.ones(self.batch, len(self.asked), dtype=torch.bool)
        return every if self.query_padding is None else self.query_padding

    def positional(self) -> Positional:
        """The encodings, built anew with the same parameters."""
        rotations = [seeded(build, self.seed + i) for i, build in enumerate(self.builders)]
        scores = [seeded(build, self.seed + 9 + i) for i, build in enumerate(self.score_builders)]
        if self.remapping is not None:
            rotations = [Rotary(HEAD_DIM)]
            scores.insert(0, RemappedRotary(self.heads, rotations[0], self.remapping))
        made = Positional(queries_keys=rotations, scores=scores)
        return made.double() if self.dtype == torch.float64 else made


def goes_by_tokens(encoding: ScoreEncoding) -> bool:
    """Whether it reads neighbors, or sums over the tokens between."""
    return not encoding.is_pairwise or getattr(encoding, "reads_neighbors", False)


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
    if relation == "some" and any(len({*row}) <= documents_of(row)[-1] for row in documents or ()):
        relation, order = "self", list(range(k_len))
    softcap = draw(st.sampled_from([None, None, None, 2.0]))
    heads = kv_heads * group
    kinds = biases(heads)
    if not softcap:
        content = of_content(heads, kv_heads)
        kinds = st.one_of(kinds, kinds, kinds, kinds, content, content, of_neighbors(heads))
    remapping = None if softcap else draw(st.none() | st.none() | st.none() | remappings())
    scores = draw(st.just([]) | st.lists(kinds, max_size=2) | st.lists(kinds, max_size=2))
    rotations = draw(st.lists(queries_keys(), max_size=2))
    anew = [build for build in scores if build().makes_anew]
    if anew:  # first, alone of its kind, and of what is not rotated before
        scores = [anew[0], *(build for build in scores if build not in anew)]
        rotations, remapping = [], None
    wide = any(build().changes_output for build in [*scores, *rotations])
    given = draw(st.none() | _positions(batch, k_len, wild=remapping is None))
    if documents is not None and draw(st.booleans()):
        given = [_begun_anew(row, draw(st.sampled_from([0, 50]))) for row in documents]
    if relation == "some" and given is None:
        given = [draw(st.sampled_from(STARTS)) + i for i in range(k_len)]
    padding = draw(st.none() | _padding(batch, k_len))
    mask = draw(st.sampled_from(["none", "none", "none", "bool", "float", "lowest"]))
    if padding is None or documents is None:  # a mask says not why, so most go without
        by_tokens = any(goes_by_tokens(build()) for build in scores)
        mask = draw(st.sampled_from(["none", "none", mask])) if by_tokens else mask
    return AttentionCase(
        k_len, draw(st.integers(0, 2**16)), draw(st.sampled_from(DTYPES)), batch, kv_heads, group,
        draw(st.sampled_from([HEAD_DIM] if wide else [1, 3, HEAD_DIM])), relation, order, given,
        draw(st.booleans()), draw(st.none() | st.integers(1, 6)), padding, documents,
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
    )  # fmt: skip


def _positions(batch: int, k_len: int, *, wild: bool) -> st.SearchStrategy[list]:
    steps = st.sampled_from([1, 1, 1, 1, 0, 2, 5, -3] if wild else [1, 1, 1, 2])
    unbroken = st.just([1] * k_len)
    moves = unbroken | st.lists(steps, min_size=k_len, max_size=k_len)
    one = st.builds(
        lambda start, by: [start + sum(by[1 : i + 1]) for i in range(k_len)],
        st.sampled_from(STARTS), moves,
    )  # fmt: skip
    return one | st.lists(one, min_size=batch, max_size=batch)


def documents_of(ids: list[int]) -> list[int]:
    """The number of each token's document: a new one begins where the id changes."""
    return torch.unique_consecutive(torch.tensor(ids), return_inverse=True)[1].tolist()


def _begun_anew(ids: list[int], apart: int) -> list[int]:
    """Each document counted from its own beginning, ``apart`` below that of the one before it."""
    numbers = documents_of(ids)
    return [i - numbers.index(number) - apart * number for i, number in enumerate(numbers)]


def _padding(batch: int, k_len: int) -> st.SearchStrategy[list[list[bool]]]:
    at_ends = st.builds(
        lambda left, right: [left <= i < k_len - right for i in range(k_len)],
        st.integers(0, k_len), st.integers(0, 3),
    )  # fmt: skip
    anywhere = st.lists(st.booleans(), min_size=k_len, max_size=k_len)
    return st.lists(st.one_of(at_ends, at_ends, anywhere), min_size=batch, max_size=batch)


def _documents(batch: int, k_len: int) -> st.SearchStrategy[list[list[int]]]:
    row = st.lists(st.integers(0, 3), min_size=k_len, max_size=k_len).map(sorted)
    jumping = st.lists(st.integers(0, 2), min_size=k_len, max_size=k_len)
    one = st.one_of(row, row, jumping)
    return st.lists(one, min_size=batch, max_size=batch) | one.map(lambda ids: [ids] * batch)


def noise(case: AttentionCase, *shape: int, more: int = 0) -> Tensor:
    """Seeded numbers in float64."""
    generator = torch.Generator().manual_seed(case.seed + more)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def content_of(case: AttentionCase) -> list[Tensor]:
    """Queries, keys and values; they learn in float64."""
    generator = torch.Generator().manual_seed(case.seed)
    shapes = (
        (case.heads, len(case.asked), HEAD_DIM),
        (case.kv_heads, case.k_len, HEAD_DIM),
        (case.kv_heads, case.k_len, case.value_dim),
    )
    made = [
        torch.randn(case.batch, *shape, generator=generator, dtype=torch.float64)
        for shape in shapes
    ]
    return [x.to(case.dtype).requires_grad_(case.dtype == torch.float64) for x in made]


def poisoned(
    case: AttentionCase, content: list[Tensor], given: dict[str, Any]
) -> tuple[list[Tensor], dict[str, Any]]:
    """NaN wherever padding is known to be; gradients flow to what is left."""
    if case.padding is None or not case.poisoned:
        return content, given
    sides = case.real_queries, case.real, case.real
    states = {"q_hidden": case.real_queries, "k_hidden": case.real}
    spoiled = {
        name: torch.where(states[name][..., None], x, torch.nan)
        for name, x in given.items()
        if name in states
    }
    made = [
        torch.where(side[:, None, :, None], x, torch.nan)
        for x, side in zip(content, sides, strict=True)
    ]
    return made, given | spoiled


def laid_out(content: list[Tensor], layout: str) -> list[Tensor]:
    """The same numbers in other memory."""
    if layout == "seq_first":
        return [x.transpose(1, 2).contiguous().transpose(1, 2) for x in content]
    if layout == "sliced":
        return [torch.cat((x, x, x), dim=-1)[..., x.shape[-1] : 2 * x.shape[-1]] for x in content]
    if layout == "transposed":
        return [x.mT.contiguous().mT for x in content]
    return list(content)


def arguments(case: AttentionCase) -> dict[str, Any]:
    """Keyword arguments of the call."""
    given: dict[str, Any] = {"is_causal": case.is_causal, "window": case.window}
    asked, some = case.asked, case.relation == "some" or case.is_placed_part
    if case.positions is not None:
        own = case.placed if case.relation == "self" else case.placed[..., asked]
        given |= {"q_positions": own, "k_positions": case.placed}
    if case.padding is not None:
        given["padding_mask"] = case.real
        if some and not (case.omit and case.relation == "some"):
            given["q_padding_mask"] = case.real[:, asked]
    if case.documents is not None and case.as_cu_seqlens and not some:
        counts = torch.bincount(case.numbers[0])
        given["cu_seqlens"] = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    elif case.documents is not None and some:
        given |= {"document_ids": case.numbers, "q_document_ids": case.numbers[:, asked]}
    elif case.documents is not None:
        given["document_ids"] = torch.tensor(case.documents)
    if case.mask != "none":
        given["attn_mask"] = _mask(case)
    if case.sunk:
        sinks = torch.linspace(-1, 2, case.heads, dtype=torch.float64)
        given["sinks"] = sinks.to(case.dtype).requires_grad_(case.dtype == torch.float64)
    if case.softcap:
        given["softcap"] = case.softcap
    if any(each.reads_hidden for each in case.positional().scores):
        hidden = noise(case, case.batch, case.k_len, DIM, more=2).to(case.dtype)
        given |= {"q_hidden": hidden[:, asked], "k_hidden": hidden}
    return given


def _mask(case: AttentionCase) -> Tensor:
    full = (case.batch, case.heads, len(case.asked), case.k_len)[-len(case.mask_shape) :]
    shape = [size if whole else 1 for size, whole in zip(full, case.mask_shape, strict=True)]
    mask = noise(case, *shape, more=1)
    if case.mask != "lowest":
        return mask > -0.5 if case.mask == "bool" else mask.to(case.dtype)
    narrow = torch.float32 if case.dtype == torch.float64 else case.dtype
    lowest = torch.full((), torch.finfo(narrow).min, dtype=case.dtype)  # as many a model hides
    return torch.where(mask > -0.5, torch.zeros_like(lowest), lowest)
