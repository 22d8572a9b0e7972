"""Random conversations: a batch of rows that grows chunk by chunk behind a cache, padded at will.

Whatever happened on the way, each row's real tokens must come out as if the row had stood alone and
been read in one pass.
"""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.fuzz.encodings import (
    HEAD_DIM,
    biases,
    of_content,
    queries_keys,
    remappings,
    seeded,
    tokens,
)
from torch import Tensor

from posenc import Positional, RemappedRotary, Rotary
from posenc.transformer import Encoder, KeyValueCache

DIM, HEADS, DEPTH, MOST = 16, 2, 2, 48


@dataclass
class Model:
    """An encoder to be drawn, with all that shapes it."""

    seed: int
    places: tuple[list, list, list]
    remapping: Any
    kv_heads: int
    window: Any
    norm: str

    def build(self) -> Encoder:
        added, rotations, scores = (
            [seeded(build, self.seed + 10 * place + i) for i, build in enumerate(builders)]
            for place, builders in enumerate(self.places)
        )
        if self.remapping is not None:
            rotations = [Rotary(HEAD_DIM)]
            scores.insert(0, RemappedRotary(HEADS, rotations[0], self.remapping))
        torch.manual_seed(self.seed)
        return (
            Encoder(
                DIM, HEADS, DEPTH, head_dim=HEAD_DIM, kv_heads=self.kv_heads, norm=self.norm,
                inner=16, window=self.window, is_causal=True,
                positional=Positional(added, rotations, scores),
            )
            .double()
            .eval()
        )  # fmt: skip


@st.composite
def models(draw) -> Model:
    """An encoder of two layers."""
    kv_heads = draw(st.sampled_from([1, 2]))
    scores = biases(HEADS) | of_content(HEADS, kv_heads, DIM)
    return Model(
        seed=draw(st.integers(0, 2**16)),
        places=(
            draw(st.lists(tokens(DIM), max_size=2)),
            draw(st.lists(queries_keys(), max_size=2)),
            draw(st.lists(scores, max_size=2)),
        ),
        remapping=draw(st.none() | st.none() | remappings()),
        kv_heads=kv_heads,
        window=draw(st.sampled_from([None, None, 3, [None, 4]])),
        norm=draw(st.sampled_from(["pre", "post"])),
    )


class Conversation(RuleBasedStateMachine):
    """A batch behind a cache, beside the rows as they would be read alone."""

    @initialize(model=models(), batch=st.integers(1, 3), fixed=st.booleans())
    def begin(self, model: Model, batch: int, fixed: bool) -> None:
        """An encoder and an empty cache."""
        self.model, self.encoder = model, model.build()
        self.cache = KeyValueCache(MOST if fixed else None)
        # The real tokens of each row, and where they stand.
        self.rows: list[list[tuple[Tensor, int]]] = [[] for _ in range(batch)]
        self.real: list[list[bool]] = [[] for _ in range(batch)]  # which cached tokens are real
        self.drawn = 0

    def _tokens(self, seq: int) -> Tensor:
        self.drawn += 1
        generator = torch.Generator().manual_seed(self.model.seed + self.drawn)
        shape = (len(self.rows), seq, DIM)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    @rule(data=st.data(), seq=st.integers(1, 5), padded=st.booleans(), placed=st.booleans())
    @precondition(lambda self: len(self.real[0]) <= MOST - 5)
    def say(self, data: st.DataObject, seq: int, padded: bool, placed: bool) -> None:
        """A chunk of tokens for every row, some of them padding, with gaps between or none."""
        x, mask = self._tokens(seq), None
        if padded:
            ends = st.builds(lambda n: [i >= n for i in range(seq)], st.integers(0, seq))
            anywhere = st.lists(st.booleans(), min_size=seq, max_size=seq)
            row = st.one_of(ends, ends, anywhere)
            mask = data.draw(st.lists(row, min_size=len(x), max_size=len(x)))
        starts = [so_far[-1][1] + 1 if so_far else 0 for so_far in self.rows]
        at = None
        if placed:
            steps = st.lists(st.sampled_from([1, 1, 2, 7]), min_size=seq, max_size=seq)
            at = [[start - 1 + sum(some[: i + 1]) for i in range(seq)]
                  for start, some in ((each, data.draw(steps)) for each in starts)]  # fmt: skip
        with torch.no_grad():
            given = None if mask is None else torch.tensor(mask)
            positions = None if at is None else torch.tensor(at)
            out = self.encoder(x, positions, padding_mask=given, cache=self.cache)
            for row, tokens_so_far in enumerate(self.rows):
                real = [True] * seq if mask is None else mask[row]
                self.real[row] += real
                counted = [starts[row] + sum(real[:i]) for i in range(seq)]
                places = counted if at is None else at[row]
                new = [(x[row, i], places[i]) for i in range(seq) if real[i]]
                tokens_so_far += new
                if new:
                    self._compare(out[row, torch.tensor(real)], tokens_so_far, len(new))

    def _compare(self, got: Tensor, so_far: list[tuple[Tensor, int]], new: int) -> None:
        tokens_so_far, places = zip(*so_far, strict=True)
        want = self.encoder(torch.stack(tokens_so_far)[None], torch.tensor([places]))[0, -new:]
        off = (got - want).abs().max().item()
        assert off < 1e-8 * (1 + want.abs().max().item()), f"off by {off}: {self.model}"

    @rule(data=st.data())
    @precondition(lambda self: len(self.real[0]) > 1)
    def take_back(self, data: st.DataObject) -> None:
        """The last tokens are forgotten."""
        length = data.draw(st.integers(1, len(self.real[0])))
        self.cache.crop(length)
        for row, real in enumerate(self.real):
            kept = sum(real[:length])
            self.rows[row] = self.rows[row][:kept]
            self.real[row] = real[:length]

    @rule(data=st.data())
    @precondition(lambda self: self.real[0])
    def follow_beams(self, data: st.DataObject) -> None:
        """Rows take the past of other rows."""
        count = len(self.rows)
        order = data.draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
        self.cache.reorder(torch.tensor(order))
        self.rows = [list(self.rows[row]) for row in order]
        self.real = [list(self.real[row]) for row in order]

    @rule()
    @precondition(lambda self: self.real[0] and len(self.rows) <= 2)
    def branch(self) -> None:
        """Each row becomes two."""
        self.cache.repeat(2)
        self.rows = [list(row) for row in self.rows for _ in range(2)]
        self.real = [list(row) for row in self.real for _ in range(2)]

    @rule()
    @precondition(lambda self: self.real[0])
    def stumble(self) -> None:
        """A step that is refused leaves no trace."""
        before = self.cache.length
        wrong = torch.zeros(len(self.rows) + 1, 1, DIM, dtype=torch.float64)
        with torch.no_grad(), pytest.raises((ValueError, RuntimeError)):
            self.encoder(wrong, cache=self.cache)
        assert self.cache.length == before


@st.composite
def packings(draw) -> tuple[Model, list[list[int]], list[list[bool]], bool]:
    """A model, rows of packed and padded documents, and whether the model learns from them."""
    model = draw(models())
    batch, seq = draw(st.integers(1, 3)), draw(st.integers(1, 14))
    ids = st.lists(st.integers(0, 3), min_size=seq, max_size=seq).map(sorted)
    real = st.lists(st.sampled_from([True, True, True, False]), min_size=seq, max_size=seq)
    rows = draw(st.lists(ids, min_size=batch, max_size=batch))
    masks = draw(st.lists(real, min_size=batch, max_size=batch))
    return model, rows, masks, draw(st.booleans())


def check_packing(case: tuple[Model, list[list[int]], list[list[bool]], bool]) -> None:
    """Each document of a packed, padded row comes out as if it stood alone."""
    model, rows, masks, staged = case
    encoder = model.build()
    generator = torch.Generator().manual_seed(model.seed)
    ids, real = torch.tensor(rows), torch.tensor(masks)
    x = torch.randn(*ids.shape, DIM, generator=generator, dtype=torch.float64)
    given = {"document_ids": ids, "padding_mask": real}
    with torch.no_grad():
        out = encoder.stages(x, **given).output if staged else encoder(x, **given)
        for row in range(len(ids)):
            for document in set(rows[row]):
                mine = (ids[row] == document) & real[row]
                if mine.any():
                    want = encoder(x[row : row + 1, mine])[0]
                    off = (out[row, mine] - want).abs().max().item()
                    assert off < 1e-8 * (1 + want.abs().max().item()), f"off by {off}: {case}"
