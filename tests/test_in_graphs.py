"""What is refused by its numbers is refused in graphs, which look when they run."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import posenc
from posenc import attention
from posenc.encodings.base import ScoreEncoding
from posenc.frequencies import ByLength, Geometric
from posenc.interop.serving import RequestTables
from posenc.positions import grid

pytestmark = pytest.mark.compiles

X = torch.linspace(-1, 1, 6 * 16).view(1, 1, 6, 16)
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 1]])
RUNNING, ANEW = torch.arange(6), torch.tensor([0, 1, 2, 0, 1, 2])


def attended(name: str, **others: Tensor) -> Callable[[Tensor], Tensor]:
    """Attention, with one argument left to give."""
    return lambda given: attention(X, X, X, **others | {name: given})


def within_documents(score: ScoreEncoding) -> Callable[[Tensor], Tensor]:
    """Attention over two documents of three tokens, which stand at what is given."""
    positional = posenc.Positional(scores=score)

    def attend(positions: Tensor) -> Tensor:
        places = {"q_positions": positions, "k_positions": positions}
        return attention(
            X, X, X, positional=positional, document_ids=DOCUMENTS, is_causal=True, **places
        )

    return attend


def biased(encoding: Any) -> Callable[[Tensor], Tensor]:
    return lambda points: encoding.table(points, points)


TABLES = RequestTables(posenc.Rotary(16), ByLength.yarn(Geometric(16), trained_length=8))
REQUEST = TABLES.request(8)
PAIR = torch.tensor([[0, 1], [1, 0]])

DAPE = posenc.DAPEv2(1, posenc.ALiBi(1))
LEVELS = posenc.LevelEmbedding(posenc.AxialSinusoidal(16), levels=2)

Case = tuple[Callable[[Tensor], Tensor], Tensor, Tensor]
CASES: dict[str, Case] = {
    "repeats before DAPEv2": (
        within_documents(DAPE), ANEW, torch.tensor([0, 1, 2, 2, 3, 4])),
    "counts across documents": (
        within_documents(posenc.CoPE(1, 16, 8)), ANEW, torch.tensor([0, 5, 2, 3, 4, 5])),
    "a point past its line": (
        posenc.LearnedGrid(16, (2, 3)).table, grid(2, 3), torch.tensor([[0, 3]])),
    "a level that is none": (
        LEVELS.table, torch.tensor([[0, 0, 1]]),
        torch.tensor([[0, 0, -1]])),
    "keys past the last": (
        biased(posenc.DecomposedRelative(1, 16, (4, 4), key_stride=(2, 2))), PAIR * 0,
        torch.tensor([[0, 0], [3, 0]])),
    "requests past what they stated": (
        lambda given: TABLES.table([REQUEST], given), RUNNING[None], RUNNING[None] + 5),
}  # fmt: skip


@pytest.mark.slow("a graph is made for each", spares=6)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_graph_refuses_what_is_refused_outside(case: Case):
    call, good, bad = case
    call(good)
    with pytest.raises((ValueError, IndexError)):
        call(bad)
    compiled = torch.compile(call, backend="eager", fullgraph=True, dynamic=True)
    compiled(good)
    with pytest.raises((RuntimeError, IndexError)):
        compiled(bad)


@pytest.mark.slow("C++ is compiled")
def test_a_compiled_lookup_does_not_count_from_the_end():
    encoding = posenc.Sinusoidal(16)
    table = encoding.table(range(8))
    compiled = torch.compile(lambda at: encoding.encode(X[0], table, at), fullgraph=True)
    assert torch.equal(compiled(RUNNING), encoding.encode(X[0], table, RUNNING))
    with pytest.raises(RuntimeError, match="A position is negative"):
        compiled(RUNNING - 1)


@pytest.mark.slow("a graph is made for each")
def test_what_is_mapped_over_is_not_looked_at():
    packed = attended("cu_seqlens")
    ends = torch.tensor([[0, 2, 6], [0, 3, 6]])
    compiled = torch.compile(torch.vmap(packed), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(ends), torch.stack([packed(row) for row in ends]))
