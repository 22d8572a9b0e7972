"""Section 13: mask, cache, pads and packed documents, against attention by torch."""

import json

import pytest
import torch
from tests.explorer.conftest import numbers, product

from posenc import Rotary
from posenc.frequencies import Geometric

PROMPT, COUNT = 4, 12
STATES = product(
    decoderStep=(0, 3, 4, 6, 11), pads=(0, 1, 5), layout=("one", "packed"),
    decoderFault=("none", "offset", "mask"), base=(16, 10_000),
)  # fmt: skip


def documents(state: dict) -> torch.Tensor:
    """The document of every column; pads are of none, −1."""
    first = COUNT // 2 if state["layout"] == "packed" else COUNT
    tokens = (torch.arange(COUNT) >= first).long()
    return torch.cat((torch.full((state["pads"],), -1), tokens))


def right_positions(state: dict) -> torch.Tensor:
    """Counted in each document from its first token on; those of pads do not matter."""
    found = documents(state)
    return sum((found == each) * ((found == each).cumsum(0) - 1) for each in (0, 1))


def weights(state: dict, vectors, fault: str) -> torch.Tensor:
    """Weights of the step's row: the library's rotary encoding, and torch's softmax."""
    found, pads = documents(state), state["pads"]
    places = right_positions(state)
    if fault == "offset":
        places[pads + PROMPT :] = 0
    rotary = Rotary(Geometric(16, float(state["base"])))
    table = rotary.table(places, dtype=torch.float64)
    query, key = (
        torch.stack([vectors[token][side] for token in [-1] * pads + list(range(COUNT))])
        for side in (0, 1)
    )
    q, k = (rotary.encode_queries(x[None], table)[0] for x in (query, key))
    row = pads + state["decoderStep"]
    seen = torch.arange(len(found)) <= row
    if fault != "mask":
        seen &= found == found[row]
    scores = (k @ q[row] / 4).masked_fill(~seen, -torch.inf)
    return scores.softmax(0)


@pytest.fixture(scope="module")
def vectors(javascript) -> dict:
    """The page's own queries and keys."""
    tokens = [-1, *range(COUNT)]
    asked = [f"Object.values(decoder.vectors({'null' if t < 0 else t}, 16))" for t in tokens]
    found = torch.tensor(javascript(asked), dtype=torch.float64)
    return dict(zip(tokens, found, strict=True))


def test_weights_and_positions_are_the_librarys(javascript, vectors):
    asked = [f"prose_decoder.decoderOf({json.dumps(state)})" for state in STATES]
    for state, found in zip(STATES, javascript(asked), strict=True):
        pads = state["pads"]
        assert found["right"]["places"][pads:] == right_positions(state).tolist()[pads:]
        for name, fault in (("right", "none"), ("shown", state["decoderFault"])):
            wanted = weights(state, vectors, fault).tolist()
            assert found[name]["weights"] == pytest.approx(wanted, abs=1e-12), (state, name)


def test_what_is_said_of_the_mask(said):
    for state, words in said("prose_decoder.aboutMask", STATES):
        found, row = documents(state), state["pads"] + state["decoderStep"]
        before = found[: row + 1]
        masked = state["decoderFault"] != "mask"
        seen = int((before == found[row]).sum()) if masked else row + 1
        expected = [seen]
        if later := len(found) - 1 - row:
            expected.append(later)
        if masked and state["pads"]:
            expected.append(state["pads"])
        if masked and (others := int(((before != found[row]) & (before >= 0)).sum())):
            expected.append(others)
        assert numbers(words) == expected, (state, words)
