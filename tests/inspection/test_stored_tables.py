"""Tables in a safetensors file, read without the rest of it."""

import torch
from safetensors.torch import save_file

from posenc.inspection.weights import header_of


def test_a_short_table_ends_where_it_ends(tmp_path):
    """Behind it stands another tensor, whose numbers are none of its rows."""
    short, other = torch.randn(2, 3), torch.randn(5, 3)
    save_file({"a": short, "b": other}, tmp_path / "model.safetensors")
    stored = header_of(tmp_path / "model.safetensors")
    assert torch.equal(stored["a"].first_rows(4), short.double())
    assert torch.equal(stored["b"].first_rows(4), other[:4].double())
