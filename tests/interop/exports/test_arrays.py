"""Arrays: exact, named, and read back from both files as they were written."""

import io
import json
import sys
from dataclasses import replace

import mpmath
import numpy
import pytest
import torch
from safetensors.torch import load

from posenc import Rotary
from posenc.frequencies import Geometric
from posenc.interop.exports import arrays, write_npz, write_safetensors
from posenc.interop.huggingface import positional_setup

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
         "num_hidden_layers": 2, "rope_theta": 5e5}  # fmt: skip


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


def test_layers_that_differ_have_names_of_their_own():
    gemma = LLAMA | {"model_type": "gemma3_text", "head_dim": 16, "num_hidden_layers": 6}
    found = arrays(gemma)
    names = {"sliding_attention.inverse_frequencies", "full_attention.inverse_frequencies"}
    assert set(found.tensors) == names
    assert json.loads(found.metadata["full_attention"])["layers"] == [5]


def test_slopes_and_tables_of_other_schemes():
    assert arrays({"model_type": "bloom", "n_head": 2}).tensors["layers.slopes"].tolist() == [
        2**-4, 2**-8,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Learned"):
        arrays({"model_type": "gpt2"})


def test_both_files_read_back():
    written = arrays(LLAMA, longest=3)
    npz, safetensors = io.BytesIO(), io.BytesIO()
    write_npz(written, npz)
    write_safetensors(written, safetensors)
    npz.seek(0)
    from_npz = numpy.load(npz)
    from_safetensors = load(safetensors.getvalue())
    for name, tensor in written.tensors.items():
        assert torch.equal(torch.from_numpy(from_npz[name]), tensor)
        assert torch.equal(from_safetensors[name], tensor)
    assert json.loads(str(from_npz["metadata"])) == written.metadata


ROPE = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
DYNAMIC = {"model_type": "llama", "max_position_embeddings": 64, "rope_parameters": ROPE}


@pytest.mark.parametrize(("longest", "length"), [(65, None), (101, 100), (65, 64)])
def test_tables_past_the_length_of_their_frequencies_are_refused(longest, length):
    """A model that reads so many tokens turns them by other frequencies."""
    with pytest.raises(ValueError, match=f"Pass length={longest}, or a smaller longest"):
        arrays(DYNAMIC, longest=longest, length=length)


@pytest.mark.parametrize(("longest", "length"), [(64, None), (64, 10), (100, 100), (9, 4000)])
def test_tables_within_their_length_are_written(longest, length):
    found = arrays(DYNAMIC, longest=longest, length=length)
    assert found.tensors["layers.cos"].shape[0] == longest


def test_layers_of_one_encoding_and_two_scales_of_scores_are_told_apart(monkeypatch):
    (part,) = positional_setup(LLAMA).parts
    other = replace(part.layers[1], softmax_scale=0.5)
    chosen = replace(part, layers=(part.layers[0], other))
    monkeypatch.setattr(sys.modules[arrays.__module__], "only_part", lambda *_, **__: chosen)
    told = arrays(LLAMA).metadata
    found = [json.loads(told[name]) for name in ("layers", "layers_1")]
    assert [(each["layers"], each["softmax_scale"]) for each in found] == [([0], 0.25), ([1], 0.5)]


def test_what_the_model_does_besides_is_told_in_words():
    falcon = {"model_type": "falcon", "alibi": True, "hidden_size": 64, "num_attention_heads": 4}
    found = arrays(falcon)
    assert "scales biases as it does products" in json.loads(found.metadata["notes"])[0]
    # of heads of 16 channels: the slopes meet products that are multiplied with 1/4
    assert found.tensors["layers.slopes"].tolist() == [0.25 / 4, 0.0625 / 4, 2**-6 / 4, 2**-8 / 4]


def test_arrays_say_of_which_length_they_are():
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    config = {"model_type": "llama", "rope_parameters": rope}
    for length, said in ((None, "short sequences"), (9000, "sequences of 9000 tokens")):
        (note,) = json.loads(arrays(config, length=length).metadata["notes"])
        assert note.endswith(f"depend on the length; these are of {said}")
    assert "notes" not in arrays({"model_type": "llama"}).metadata
