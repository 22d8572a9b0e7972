"""Tables in a safetensors file, read without the rest of it."""

import pytest
import torch
from safetensors.torch import save_file

from posenc.inspection.safetensors_header import shards_of
from posenc.inspection.weights import header_of


def test_a_short_table_ends_where_it_ends(tmp_path):
    """Behind it stands another tensor, whose numbers are none of its rows."""
    short, other = torch.randn(2, 3), torch.randn(5, 3)
    save_file({"a": short, "b": other, "c": other[None].clone()}, tmp_path / "model.safetensors")
    stored = header_of(tmp_path / "model.safetensors")
    assert torch.equal(stored["a"].first_rows(4), short.double())
    assert torch.equal(stored["b"].first_rows(4), other[:4].double())
    assert torch.equal(stored["c"].first_rows(4), other[:4].double())
    assert stored["c"].table == (5, 3)


def test_a_file_of_which_a_part_is_missing_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.randn(2, 3)}, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        header_of(path)


@pytest.mark.parametrize("text", ["[]", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}', "{"])
def test_an_index_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="index"):
        shards_of(path)
