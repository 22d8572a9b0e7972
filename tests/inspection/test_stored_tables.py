"""Tables in a safetensors file, read without the rest of it, and what they confirm."""

import pytest
import torch
from safetensors.torch import save_file

from posenc import Rotary, Sinusoidal
from posenc.inspection.model import inspect_model
from posenc.inspection.weights import confirmed, header_beside, header_of


def test_a_short_table_ends_where_it_ends_and_a_broken_file_is_refused(tmp_path):
    """Behind it stands another tensor, whose numbers are none of its rows."""
    path, short, other = tmp_path / "model.safetensors", torch.randn(2, 3), torch.randn(5, 3)
    save_file({"a": short, "b": other, "c": other[None].clone()}, path)
    stored = {each.name: each for each in header_of(path)}
    for name, table in (("a", short), ("b", other[:4]), ("c", other[:4])):
        assert torch.equal(stored[name].first_rows(4), table)
    assert stored["c"].table == (5, 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        header_of(path)


LLAMA = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
         "num_hidden_layers": 2, "max_position_embeddings": 64}  # fmt: skip
MARIAN = {"model_type": "marian", "d_model": 16, "encoder_attention_heads": 2,
          "decoder_attention_heads": 2, "max_position_embeddings": 32}  # fmt: skip
SINES = Sinusoidal(16, convention="concatenated").table(range(32))
TURNS = Rotary(64).table(range(8))[:, 0]


@pytest.mark.parametrize(
    ("config", "tensors", "said"),
    [
        ({"model_type": "gpt2"}, {"wpe.weight": torch.zeros(1024, 768)}, "1024 rows of 768, as"),
        ({"model_type": "gpt2"}, {"wpe.weight": torch.zeros(9, 768)}, "file says [1024, 768]"),
        ({"model_type": "t5"}, {"encoder.relative_attention_bias.weight": torch.zeros(32, 8)},
         "32 buckets of 8 heads"),
        (MARIAN, {"encoder.embed_positions.weight": SINES}, "holds the expected sines"),
        (MARIAN, {"encoder.embed_positions.weight": SINES.flip(0)}, "other numbers than"),
        (LLAMA, {"layers.0.q_proj.weight": torch.zeros(256, 2)}, "256 wide: 4 × 64"),
        (LLAMA, {"layers.0.q_proj.weight": torch.zeros(32, 2, dtype=torch.int32)}, "packed in I32"),
        (LLAMA, {"inv_freq": torch.zeros(32)}, "32 frequencies, as expected"),
        (LLAMA, {"inv_freq": torch.zeros(16)}, "16 frequencies, expected 32"),
        (LLAMA, {"cos_cached": TURNS.repeat(1, 2)}, "as half pairing does (as expected)"),
        (LLAMA, {"cos_cached": TURNS.repeat_interleave(2, 1)}, "as interleaved pairing does (exp"),
        (LLAMA, {"a.1.rope.w": torch.zeros(3)}, "mention positions: a.*.rope.w [3]"),
    ],
)  # fmt: skip
def test_what_the_weights_confirm(tmp_path, config, tensors, said):
    save_file({name: x.contiguous() for name, x in tensors.items()}, tmp_path / "model.safetensors")
    assert said in "\n".join(confirmed(inspect_model(config), header_beside(tmp_path)))
