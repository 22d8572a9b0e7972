"""Tables in a safetensors file, read without the rest of it."""

import json

import pytest
import torch
from safetensors.torch import save_file

from posenc.inspection.safetensors_header import shards_of
from posenc.inspection.weights import header_of


def test_a_short_table_ends_where_it_ends(tmp_path):
    """Behind it stands another tensor, whose numbers are none of its rows."""
    short, other = torch.randn(2, 3), torch.randn(5, 3)
    save_file({"a": short, "b": other}, tmp_path / "model.safetensors")
    stored = header_of(tmp_path / "model.safetensors")
    assert torch.equal(stored["a"].first_rows(4), short.double())
    assert torch.equal(stored["b"].first_rows(4), other[:4].double())


WHOLE = {"dtype": "F32", "shape": [20, 8], "data_offsets": [0, 640]}


@pytest.mark.parametrize(
    ("header", "size", "told"),
    [
        (json.dumps({"q": {"a": 12}}), 0, "its header cannot be read"),
        (json.dumps({"q": WHOLE}), 100, "a part is missing"),
        (json.dumps({"q": WHOLE | {"shape": [20, 9]}}), 640, "its header cannot be read"),
        ("[" * 100_000, 0, "its header cannot be read"),
    ],
)
def test_a_file_that_is_not_what_its_header_says_is_refused(tmp_path, header, size, told):
    """It was read as far as it went, or ended in an error of Python's."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(size))
    with pytest.raises(ValueError, match=f"model.safetensors.*{told}"):
        header_of(path)


@pytest.mark.parametrize("text", ["[]", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}', "{"])
def test_an_index_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no index of shards"):
        shards_of(path)
