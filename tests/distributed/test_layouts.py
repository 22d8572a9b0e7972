"""Every token is held once, whoever holds it."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.distributed.layouts import dealt
from posenc.positions import packed

LAYOUTS = ["contiguous", "zigzag", "striped", "zigzag_by_document"]
DOCUMENTS = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=60)
@given(layout=st.sampled_from(LAYOUTS), lengths=DOCUMENTS, world=st.integers(1, 5))
def test_every_token_is_held_once(layout, lengths, world):
    documents = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    held = dealt(layout, len(documents), world, documents.unsqueeze(0))
    real = held[held >= 0]
    assert real.sort().values.equal(torch.arange(len(documents)))
    assert held.shape[:2] == (1, world)
    padding = int((held < 0).sum())
    most = 2 * world if layout != "zigzag_by_document" else world * (len(lengths) + 1)
    assert padding < most


def test_documents_are_balanced_where_a_plain_zigzag_is_not():
    lengths = torch.tensor([448, 64])
    documents = torch.arange(2).repeat_interleave(lengths).unsqueeze(0)
    place = packed(lengths)

    def busiest(layout):
        work = (place[dealt(layout, 512, 4, documents)[0]] + 1).sum(1).double()
        return float(work.max() / work.mean())

    assert busiest("zigzag_by_document") < 1.01
    assert busiest("zigzag") > 1.2
