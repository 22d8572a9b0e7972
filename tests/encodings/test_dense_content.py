"""Nested and sparse tensors are refused by name."""

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from posenc import (
    PEG,
    ALiBi,
    CoPE,
    Learned,
    Positional,
    Rotary,
    Sinusoidal,
    T5Bias,
    attention,
    move_keys,
)
from posenc.positions import Coordinates, checked, in_documents, left_padded, packed
from posenc.transformer import Encoder, MultiHeadAttention, TokenEmbedding

ROTARY = Positional(queries_keys=Rotary(8))
Q, LENGTHS = torch.randn(2, 2, 5, 8), (3, 5)

CONTENT: dict[str, Callable[[Tensor], object]] = {
    "sinusoidal": lambda x: Sinusoidal(8)(x),
    "learned": lambda x: Learned(8, 9)(x),
    "added": lambda x: Sinusoidal(8).encode(x, Sinusoidal(8).table(range(5))),
    "neighbors": lambda x: PEG(8)(x, torch.zeros(5, 2).long()),
    "encoder": lambda x: Encoder(8, 2, 1)(x),
    "layer": lambda x: MultiHeadAttention(8, 2)(x),
}
HEADS: dict[str, Callable[[Tensor], object]] = {
    "rotary": lambda q: Rotary(8)(q, Q),
    "moved": lambda q: move_keys(q, range(5), range(5), Rotary(8)),
    "queries": lambda q: attention(q, Q, Q, positional=ROTARY),
    "values": lambda q: attention(Q, Q, q),
    "mask": lambda q: attention(Q, Q, Q, attn_mask=q),
    "scores": lambda q: ALiBi(2)(q),
    "content": lambda q: CoPE(2, 8, 4)(Q[..., :5], q=q, k=Q),
}
NUMBERS: dict[str, Callable[[Tensor], object]] = {
    "checked": checked,
    "table": lambda positions: Sinusoidal(8).table(positions),
    "lookup": lambda positions: Learned(8, 9).table(positions),
    "distances": lambda positions: T5Bias(2).table(positions, positions),
    "coordinates": Coordinates,
    "nearest": lambda values: Coordinates.rounded(values, Fraction(1, 2)),
    "documents": in_documents,
    "padding": left_padded,
    "boundaries": lambda positions: packed(cu_seqlens=positions),
    "in attention": lambda ids: attention(Q, Q, Q, positional=ROTARY, document_ids=ids),
    "in an encoder": lambda positions: Encoder(8, 2, 1)(Q[:, 0], positions),
    "ids": lambda ids: TokenEmbedding(9, 8)(ids),
}


def nested(rows: list[Tensor], layout: torch.layout) -> Tensor:
    return torch.nested.nested_tensor(rows, layout=layout)


CALLS = {**CONTENT, **HEADS, **NUMBERS}


def given(name: str) -> Tensor:
    return torch.arange(5) if name in NUMBERS else Q if name in HEADS else Q[0]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=["jagged", "strided"])
def test_rows_of_different_lengths_are_to_be_padded_or_packed(name, layout):
    row = given(name)[0].transpose(0, 1) if name in HEADS else given(name)
    x = torch.nested.nested_tensor([row[:n] for n in LENGTHS], layout=layout)
    with pytest.raises(TypeError, match="nested"):
        CALLS[name](x.transpose(1, 2) if name in HEADS else x)


@pytest.mark.parametrize("name", CALLS)
def test_other_layouts_are_to_be_made_dense(name):
    with pytest.raises(TypeError, match="sparse_coo"):
        CALLS[name](given(name).to_sparse())


def test_what_they_are_told_to_become_is_taken():
    rows = [torch.randn(n, 8) for n in LENGTHS]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    real = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    encoder = Encoder(8, 2, 1, positional=Positional(queries_keys=Rotary(4))).eval()
    one_row = torch.cat(rows)[None]
    ids = torch.tensor([[0] * 3 + [1] * 5])
    got = encoder(padded, padding_mask=real)[real]
    torch.testing.assert_close(got, encoder(one_row, document_ids=ids)[0])
