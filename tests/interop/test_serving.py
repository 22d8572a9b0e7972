"""Batches of requests with other schedules: each as if it were alone, and pinned to its own."""

import pytest
import torch

from posenc import Rotary
from posenc.frequencies import ByLength, Geometric, LongRoPE, YaRN
from posenc.interop.huggingface import rotary_from_config
from posenc.interop.serving import RequestTables, requests_from_config, rotation_key

LENGTHS = (30, 70, 128)


@pytest.fixture(params=["half", "interleaved"])
def tables(request):
    rotary = Rotary(16, head_dim=24, pairing=request.param)
    return RequestTables(rotary, ByLength.yarn(Geometric(16), 32, factors=(2, 4)))


def test_each_request_is_rotated_as_if_it_were_alone(tables):
    torch.manual_seed(0)
    requests = [tables.request(length) for length in LENGTHS]
    positions = torch.stack([torch.randint(0, length, (5,)) for length in LENGTHS])
    q, k = torch.randn(3, 4, 5, 24), torch.randn(3, 2, 5, 24)
    together = tables.encode(q, k, requests, positions)
    factors = (None, 4, 4)
    for row, factor in enumerate(factors):
        plain = Geometric(16)
        schedule = plain if factor is None else YaRN(plain, factor, 32)
        alone = tables.rotaries[0].with_frequencies(schedule)
        table = tables.table(requests, positions)[row]
        assert torch.equal(table, alone.table(positions[row]))
        expected = alone(q[row : row + 1], k[row : row + 1], positions[row])
        for got, wanted in zip(together, expected, strict=True):
            assert torch.equal(got[row : row + 1], wanted)


def test_decoding_gives_what_prefill_gave(tables):
    torch.manual_seed(0)
    requests = [tables.request(length) for length in (20, 60)]
    q, k = torch.randn(2, 4, 20, 24), torch.randn(2, 2, 20, 24)
    positions = torch.arange(20).expand(2, 20)
    whole = tables.encode(q, k, requests, positions)
    for step in (0, 7, 19):
        at = slice(step, step + 1)
        one = tables.encode(q[:, :, at], k[:, :, at], requests, positions[:, at])
        assert torch.equal(one[0], whole[0][:, :, at])
        assert torch.equal(one[1], whole[1][:, :, at])


def test_a_request_stays_within_what_it_stated(tables):
    short, long = tables.request(10), tables.request(100)
    for positions in ([[10], [5]], [[3], [100]], [[-1], [5]]):
        with pytest.raises(IndexError, match="stated, "):
            tables.table([short, long], torch.tensor(positions))


def test_prefixes_are_shared_where_keys_are_encoded_alike(tables):
    keys = [tables.request(length).key for length in (1, 32, 33, 64, 65, 128)]
    assert keys[0] == keys[1] != keys[2] == keys[3] != keys[4] == keys[5] != keys[0]
    others = [
        Rotary(16), Rotary(16, pairing="interleaved"), Rotary(16, head_dim=24),
        Rotary(16, head_dim=24, rotated="suffix"), Rotary(16, arithmetic="float32"),
        Rotary(16, base=500),
    ]  # fmt: skip
    assert len({rotation_key(rotary) for rotary in others}) == len(others)
    assert rotation_key(Rotary(16)) == rotation_key(Rotary(16, heads_first=False))


def test_a_configuration_gives_its_own_schedules():
    factors = [1.0, 1.5], [1.0, 32.0]
    phi = {"model_type": "phi3", "hidden_size": 16, "num_attention_heads": 4,
           "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
           "rope_scaling": {"type": "longrope", "short_factor": factors[0],
                            "long_factor": factors[1]}}  # fmt: skip
    _, by_length = requests_from_config(phi)
    longrope = LongRoPE(Geometric(4), *map(tuple, factors), 4096, factor=32.0)
    assert by_length == ByLength.longrope(longrope, 131072)
    for length in (4096, 4097):
        assert by_length.at(length) == rotary_from_config(phi, length=length).frequencies
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096,
               "truncate": False}  # fmt: skip
    yarn = {"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4,
            "rope_scaling": scaling}  # fmt: skip
    rotary, by_length = requests_from_config(yarn, factors=(2, 4))
    assert by_length.at(4096) == rotary.frequencies.of
    assert by_length.at(16384) == rotary.frequencies
    assert by_length.at(8192).truncate is False
    inside = {"model_type": "llava", "text_config": yarn, "vision_config": {"model_type": "vit"}}
    assert requests_from_config(inside, factors=(2, 4), part="text")[1] == by_length
