"""Arrays: exact, named, and read back from both files as they were written."""

import io
import json

import mpmath
import numpy
import pytest
import torch
from safetensors.torch import load

from posenc import Rotary
from posenc.frequencies import Geometric
from posenc.interop.exports import arrays, write_npz, write_safetensors

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
         "num_hidden_layers": 2, "rope_theta": 5e5}  # fmt: skip
ROPE = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
DYNAMIC = {"model_type": "llama", "max_position_embeddings": 64, "rope_parameters": ROPE}


def test_frequencies_and_tables_are_correctly_rounded():
    found = arrays(LLAMA, longest=5).tensors
    with mpmath.workdps(50):
        radians = [mpmath.mpf(500_000) ** (mpmath.mpf(-2 * i) / 16) for i in range(8)]
        assert found["layers.inverse_frequencies"].tolist() == [float(w) for w in radians]
        cosines = [[float(mpmath.cos(p * w)) for w in radians] for p in range(5)]
    assert torch.equal(found["layers.cos"], torch.tensor(cosines, dtype=torch.float32))


def test_turns_give_any_position_exactly():
    said = json.loads(arrays(LLAMA).metadata["layers"])
    turns = [int(word, 16) for word in said["turns_in_units_of_2^-192"]]
    position, one = 10**12 + 7, 1 << 192
    with mpmath.workdps(60):
        phases = [2 * mpmath.pi * mpmath.mpf(position * t % one) / one for t in turns]
        cosines = torch.tensor([float(mpmath.cos(phase)) for phase in phases]).float()
    table = Rotary(Geometric(16, 5e5)).table(torch.tensor([position]))
    assert torch.equal(table[0, 0], cosines)
    assert (said["layers"], said["pairing"], said["head_dim"]) == ([0, 1], "half", 16)


def test_slopes_and_tables_of_other_schemes():
    found = arrays({"model_type": "bloom", "n_head": 2}).tensors["layers.slopes"]
    assert found.tolist() == [2**-4, 2**-8]
    falcon = {"model_type": "falcon", "alibi": True, "hidden_size": 64, "num_attention_heads": 4}
    found = arrays(falcon)
    # Slopes meet products that are multiplied with 1/√16.
    assert found.tensors["layers.slopes"].tolist() == [2**-4, 2**-6, 2**-8, 2**-10]
    assert json.loads(found.metadata["notes"])
    with pytest.raises(ValueError, match="Learned"):
        arrays({"model_type": "gpt2"})


def test_both_files_read_back():
    written = arrays(LLAMA, longest=3)
    npz, safetensors = io.BytesIO(), io.BytesIO()
    write_npz(written, npz)
    write_safetensors(written, safetensors)
    npz.seek(0)
    from_npz, from_safetensors = numpy.load(npz), load(safetensors.getvalue())
    for name, tensor in written.tensors.items():
        assert torch.equal(torch.from_numpy(from_npz[name]), tensor)
        assert torch.equal(from_safetensors[name], tensor)
    assert json.loads(str(from_npz["metadata"])) == written.metadata


def test_tables_reach_as_far_as_their_frequencies_hold():
    for longest, length in ((64, None), (64, 10), (100, 100)):
        found = arrays(DYNAMIC, longest=longest, length=length)
        assert found.tensors["layers.cos"].shape[0] == longest
        assert str(length or "short") in found.metadata["notes"]
    for longest, length in ((65, None), (101, 100)):
        with pytest.raises(ValueError, match="depend on the length"):
            arrays(DYNAMIC, longest=longest, length=length)
