"""Tables in a safetensors file, read without the rest of it."""

import pytest
import torch
from safetensors.torch import save_file

from posenc.inspection.safetensors_header import shards_of
from posenc.inspection.weights import header_of


def test_a_short_table_ends_where_it_ends_and_a_broken_file_is_refused(tmp_path):
    """Behind it stands another tensor, whose numbers are none of its rows."""
    path, short, other = tmp_path / "model.safetensors", torch.randn(2, 3), torch.randn(5, 3)
    save_file({"a": short, "b": other, "c": other[None].clone()}, path)
    stored = header_of(path)
    for name, table in (("a", short), ("b", other[:4]), ("c", other[:4])):
        assert torch.equal(stored[name].first_rows(4), table.double())
    assert stored["c"].table == (5, 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        header_of(path)


@pytest.mark.parametrize(
    "text", ["[]", '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "../b"}}']
)
def test_an_index_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ValueError, match="index"):
        shards_of(tmp_path / "index.json")
