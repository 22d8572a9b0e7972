"""Section 14: whom a patch resembles, against the library's encodings of grids."""

import json
from fractions import Fraction

import pytest
import torch
from tests.explorer.conftest import numbers, product

from posenc import AxialRotary, AxialSinusoidal, RoPEMixed, Sinusoidal
from posenc.positions import grid

DIM = 64
STATES = [
    state
    for state in product(
        gridKind=("flat", "sine", "axial", "mixed"), gridSize=(4, 14, 9), gridHead=(0, 5),
        coordinates=("own", "stretched"), patchRow=(0, 3), patchColumn=(1, 3),
    )
    if state["gridKind"] == "mixed" or state["gridHead"] == 0
]  # fmt: skip


@pytest.fixture(scope="module")
def frequencies(javascript) -> torch.Tensor:
    """The page's own frequencies of mixed heads, [2, heads, pairs] with those of x first."""
    asked = [f"patches.mixedFrequencies({DIM}, {head})" for head in range(8)]
    return torch.tensor(javascript(asked), dtype=torch.float64).permute(2, 0, 1)


def own_scores(encoding, table: torch.Tensor, heads: int = 1) -> torch.Tensor:
    """Scores of a query of ones and its own key at all pairs of patches, 1 at the same."""
    ones = torch.ones(1, heads, table.shape[0], DIM, dtype=torch.float64)
    turned = encoding.encode_queries(ones, table)[0]
    return turned @ turned.mT / DIM


MATRICES: dict[tuple, torch.Tensor] = {}


def alike(state: dict, frequencies: torch.Tensor) -> torch.Tensor:
    """[size, size] from the library, for the patch of the state."""
    size = state["gridSize"]
    key = tuple(state[name] for name in ("gridKind", "gridSize", "gridHead", "coordinates"))
    if key not in MATRICES:
        MATRICES[key] = matrix(state, frequencies)
    return MATRICES[key][state["patchRow"] * size + state["patchColumn"]].view(size, size)


def matrix(state: dict, frequencies: torch.Tensor) -> torch.Tensor:
    """All patches against all patches."""
    size, kind = state["gridSize"], state["gridKind"]
    places = grid(size, size)
    stretched = state["coordinates"] == "stretched"
    stretch = Fraction(size, 14) if stretched else 1
    if kind in ("flat", "sine"):
        if kind == "flat":
            encoding, places = Sinusoidal(DIM), torch.arange(size * size)
        else:
            encoding = AxialSinusoidal(DIM, stretch=stretch)
        table = encoding.table(places, dtype=torch.float64)
        found = table @ table.mT / (DIM / 2)
    elif kind == "axial":
        encoding = AxialRotary(DIM, stretch=(stretch, stretch))
        found = own_scores(encoding, encoding.table(places, dtype=torch.float64))[0]
    else:
        encoding = RoPEMixed(DIM, heads=8).double()
        encoding.load(frequencies / float(stretch))
        table = encoding.table(places, dtype=torch.float64)
        found = own_scores(encoding, table, 8)[state["gridHead"]].detach()
    return found


def test_the_map_is_the_librarys(javascript, frequencies):
    asked = [f"state_facts.patchMapOf({json.dumps(state)})" for state in STATES]
    for state, found in zip(STATES, javascript(asked), strict=True):
        wanted = alike(state, frequencies)
        given = torch.tensor(found, dtype=torch.float64)
        torch.testing.assert_close(given, wanted, rtol=0, atol=1e-12, msg=str(state))


def test_what_is_said_of_neighbors(said, frequencies):
    for state, words in said("prose_patches.aboutNeighbors", STATES):
        found, size = alike(state, frequencies), state["gridSize"]
        r, c = state["patchRow"], state["patchColumn"]
        down, across = (1 if r < size - 1 else -1), (1 if c < size - 1 else -1)
        assert ("below" in words) is (down > 0)
        assert ("right" in words) is (across > 0)
        wanted = [found[r, c + across], found[r + down, c], found[r + down, c + across]]
        told = numbers(words)[2:5]
        assert told == pytest.approx([x.item() for x in wanted], abs=6e-5)
