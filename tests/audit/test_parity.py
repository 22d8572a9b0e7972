"""Where the bits of two implementations part: by profiles, by own code, by weights."""

import math

import pytest
import torch
from safetensors.torch import save_file
from tests.audit.zoo.right.rotary import VLLM, LlamaRotary
from transformers import CohereConfig, LlamaConfig, PhiConfig

from posenc import Rotary
from posenc.audit import CannotCheckError, parity
from posenc.frequencies import Geometric, Linear

SMALL, SCALED = Rotary(16), Rotary(Linear(Geometric(16), 3))
SIZE = {"hidden_size": 128, "num_attention_heads": 2, "num_hidden_layers": 1}
SEEN = [(), ()]


def own(pairing="half", head_dim=32, width=32, off=0.0, units=0):
    """A rotation whose sine or result may be wrong at one position."""

    def rotate(q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        SEEN[:] = q, k
        rotary = Rotary(width, head_dim=head_dim, pairing=pairing)
        table = rotary.table(position_ids[0])
        table[position_ids[0] == 13, 1, 5] += off
        q, k = rotary.encode_queries(q, table), rotary.encode_keys(k, table)
        q[..., 13:14, 5:6].view(torch.int16)[...] += units
        return q, k

    return rotate


def test_units_in_the_last_place():
    found = parity(own(), own(units=2), length=20)
    assert (found.q.count, found.q.by_one, found.q.most_ulp) == (4, 0, 2)  # one for each head
    assert (found.q.position, found.q.pair) == (13, 5)
    one, other = found.q.values
    assert abs(other - one) == 2 * 2.0 ** (math.frexp(one)[1] - 8)
    assert found.k.is_none


def test_units_of_the_kept_table_are_those_of_its_dtype():
    """Both keep bfloat16, whose neighbors are 65,536 units of float32 apart."""
    scaled = Rotary(Linear(Geometric(64), 3))
    kept = parity("vllm", "transformers", encoding=scaled, length=6000).stages[-1]
    assert kept.by_one > 0
    assert 0 < kept.most_ulp < 2**16


def test_own_code():
    found = parity(LlamaRotary, "transformers", encoding=Rotary(32), length=50)
    assert (found.is_equal, found.stages) == (True, [])
    found = parity(VLLM, LlamaRotary, length=40, dtype=torch.float32)
    assert found.encoding == ""
    assert found.q.largest < 1e-5
    for width in (32, 16):  # where a part turns, pairs are counted in it
        found = parity(own(width=width), own(width=width, off=0.5), length=20)
        assert (found.q.position, found.q.pair, found.k.position, found.k.pair) == (13, 5, 13, 5)
    assert parity(own(off=0.5), "exact", encoding=Rotary(32), length=20).q.position == 13


def test_own_code_of_another_pairing_is_another_function():
    """q and k are permuted for profiles alone: own code gets the same queries and keys."""
    meant = {"encoding": Rotary(32, pairing="interleaved"), "length": 20, "dtype": torch.float32}
    for a, given in ((own("interleaved"), {**meant, "encoding": None}), ("exact", meant)):
        found = parity(a, own("half"), **given)
        assert (found.status, len(found.notes)) == (1, 1)
    assert parity("exact", own("interleaved"), **meant).is_equal


def test_configurations_and_models():
    """transformers rotates Cohere in float32, and Llama in the dtype of content."""
    llama = LlamaConfig(**SIZE)
    assert parity(llama, "transformers", config=llama, length=60).is_equal
    assert not parity("transformers", "exact", config=llama, length=40).notes
    (note,) = parity("transformers", "exact", config=CohereConfig(**SIZE), length=20).notes
    assert "gives other bits" in note
    nobody = {**SIZE, "model_type": "nobody", "rope_theta": 1e4}
    assert "could not be held" in parity("transformers", "exact", config=nobody, length=20).notes[0]


def test_scores_are_multiplied_as_the_configuration_says():
    plain = {"model_type": "granite", "hidden_size": 256, "num_attention_heads": 4}
    usual, told = (
        parity("vllm", "sglang", config={**plain, "attention_multiplier": scale}, length=20)
        for scale in (0.125, 0.0078125)
    )
    assert told.effects[0].spread == pytest.approx(usual.effects[0].spread / 16)


DYNAMIC = {
    "model_type": "llama", "hidden_size": 128, "num_attention_heads": 2,
    "max_position_embeddings": 64, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0},
}  # fmt: skip


def test_frequencies_by_length_are_those_of_the_length_that_is_said():
    short, long = (parity("transformers", "exact", config=DYNAMIC, length=n) for n in (64, 128))
    assert "base=10000.0" in short.encoding
    assert "Fraction(3, 1)" in long.encoding  # 2 · 128 / 64 − 1
    assert "128" in long.notes[0]


PHI = PhiConfig(hidden_size=64, num_attention_heads=4, num_hidden_layers=1)


@pytest.mark.parametrize(
    ("a", "b", "given", "said"),
    [
        ("vllm", "sglang", {}, "configuration"),
        ("torchtune", "exact", {"encoding": SCALED}, "Linear"),
        (lambda x: x.sum(), "exact", {"encoding": SMALL}, "no form"),
        ("transformers", PHI, {"config": PHI, "length": 20}, "width 16 and Phi.* of 8"),
        ("transformers", "exact", {"config": DYNAMIC}, "length"),
        ("transformers", "vllm", {"config": DYNAMIC, "length": 128}, "vllm"),
    ],
)
def test_what_cannot_be_compared_is_said(a, b, given, said):
    with pytest.raises(CannotCheckError, match=said):
        parity(a, b, **given)


# Weights of a file.


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def of_weights(path, **options):
    """What is told of content from a file, and own code's queries and keys of it."""
    given = {"length": 20, "weights": path, "dtype": torch.float32, **options}
    found = parity("exact", own(off=0.01), encoding=Rotary(32), **given)
    return found.effects, *SEEN


@pytest.mark.parametrize("form", ["projections", "content"])
def test_weights_of_a_file(path, form):
    generator = torch.Generator().manual_seed(0)
    if form == "content":
        save_file({n: 3 * torch.randn(2, 15, 32, generator=generator) for n in ("q", "k")}, path)
    else:
        name = "model.layers.1.self_attn.{}_proj.weight"
        shapes = {"q": (128, 24), "k": (64, 24)}
        drawn = {n: torch.randn(shapes[n], generator=generator).bfloat16() for n in shapes}
        save_file({name.format(n): x for n, x in drawn.items()}, path)
    (random, given), *_ = of_weights(path, dtype=torch.bfloat16, layer=1)
    assert given.tokens == (15 if form == "content" else 20)
    # larger content: larger scores, and larger changes of them
    assert given.spread > 3 * random.spread
    assert given.score > random.score
    if form == "projections":
        with pytest.raises(CannotCheckError, match="layer 2"):
            of_weights(path, layer=2)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "queries", "keys"),
    [(8, 2, [0, 1, 4, 5], [0, 1]), (4, 1, [0, 1, 2, 3], [0, 0]), (2, 2, [0, 0, 1, 1], [0, 1])],
)
def test_queries_meet_the_keys_that_they_have_in_the_model(path, heads, kv_heads, queries, keys):
    numbered = {n: torch.arange(count)[:, None, None].expand(count, 20, 32).float().contiguous()
                for n, count in (("q", heads), ("k", kv_heads))}  # fmt: skip
    save_file(numbered, path)
    _, q, k = of_weights(path)
    assert q[0, :, 0, 0].tolist() == queries
    assert k[0, :, 0, 0].tolist() == keys
    save_file(numbered | {"k": torch.zeros(5, 20, 32)}, path)
    with pytest.raises(CannotCheckError, match="5 key heads"):
        of_weights(path)


def test_projections_have_their_biases(path):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(4 * 32, 16, generator=generator) for _ in "qk"]
    bias = 30 * torch.randn(4 * 32, generator=generator)
    names = [f"layers.0.self_attn.{side}_proj" for side in "qk"]
    stored = {f"{name}.weight": x for name, x in zip(names, weights, strict=True)}
    norm = {"layers.0.self_attn.q_norm.weight": torch.ones(32)}
    save_file({**stored, **norm, f"{names[1]}.bias": bias}, path)
    effects, _, k = of_weights(path)
    assert "q_norm.weight left out" in effects[1].content
    hidden = torch.randn(20, 16, generator=torch.Generator().manual_seed(0))
    wanted = (hidden @ weights[1].T + bias).unflatten(-1, (4, 32)).transpose(0, 1)
    torch.testing.assert_close(k[0], wanted[:2])
