"""Text, images and videos in one row: worked values, packing, padding, and what is refused."""

import pytest
import torch

from posenc.positions import mixed_modalities, packed

TEXT, IMAGE, VIDEO = 0, 1, 2


def row(*parts: tuple[int, int]) -> torch.Tensor:
    """Types, each so many times."""
    return torch.cat([torch.full((count,), kind) for kind, count in parts])


def test_a_video_between_text_worked_by_hand():
    """Two frames of one row of two, one second and 3 positions apart, after two words."""
    types = row((TEXT, 2), (VIDEO, 4), (TEXT, 1))
    t, h, w = mixed_modalities(types, {VIDEO: [(2, 1, 2)]}, times={VIDEO: [[0, 3]]}).T.tolist()
    assert t == [0, 1, 2, 2, 5, 5, 4]
    assert h == [0, 1, 2, 2, 2, 2, 4]
    assert w == [0, 1, 2, 3, 2, 3, 4]


def test_text_may_go_on_behind_the_last_frame():
    types = row((TEXT, 2), (VIDEO, 4), (TEXT, 1))
    times = {VIDEO: [[0, 3]]}
    grids = {VIDEO: [(2, 1, 2)]}
    last = mixed_modalities(types, grids, times=times, after="all")[-1]
    assert last.tolist() == [6, 6, 6]
    assert torch.equal(mixed_modalities(types[:6], grids, times=times, after="all"),
                       mixed_modalities(types[:6], grids, times=times))  # fmt: skip


DOCUMENTS = [
    (row((TEXT, 2), (IMAGE, 4), (TEXT, 1)), {IMAGE: [(1, 2, 2)]}),
    (row((TEXT, 3)), {}),
    (row((IMAGE, 2), (TEXT, 1), (VIDEO, 6)), {IMAGE: [(1, 2, 1)], VIDEO: [(3, 1, 2)]}),
    (row((VIDEO, 2), (TEXT, 2)), {VIDEO: [(2, 1, 1)]}),
]


@pytest.mark.parametrize("after", ["sides", "all"])
def test_packed_documents_stand_as_they_would_alone(after):
    """What packing in training has got wrong: counting on from one document into the next."""
    alone = [mixed_modalities(types, grids, after=after) for types, grids in DOCUMENTS]
    grids = {kind: [g for _, each in DOCUMENTS for g in each.get(kind, [])] for kind in (1, 2)}
    types = torch.cat([types for types, _ in DOCUMENTS])
    ids = torch.cat([torch.full((len(types),), n) for n, (types, _) in enumerate(DOCUMENTS)])
    together = mixed_modalities(types, grids, document_ids=ids, after=after)
    assert torch.equal(together, torch.cat(alone))
    assert torch.equal(together[ids == 1][:, 0], packed(document_ids=ids)[ids == 1])


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_padding_moves_nothing(left):
    longest = max(len(types) for types, _ in DOCUMENTS)
    rows, masks = [], []
    for types, _ in DOCUMENTS:
        missing = longest - len(types)
        padding, real = torch.full((missing,), IMAGE), torch.ones(len(types), dtype=torch.bool)
        rows.append(torch.cat((padding, types) if left else (types, padding)))
        none = torch.zeros(missing, dtype=torch.bool)
        masks.append(torch.cat((none, real) if left else (real, none)))
    grids = {kind: [g for _, each in DOCUMENTS for g in each.get(kind, [])] for kind in (1, 2)}
    types, mask = torch.stack(rows), torch.stack(masks)
    positions = mixed_modalities(types, grids, mask=mask)
    for index, (alone, each) in enumerate(DOCUMENTS):
        assert torch.equal(positions[index][mask[index]], mixed_modalities(alone, each))
        assert (positions[index][~mask[index]] == 0).all()
