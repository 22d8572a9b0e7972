"""Where the bits of two implementations part: by profiles, by own code, by weights."""

import math

import pytest
import torch
from safetensors.torch import save_file
from tests.audit.zoo.right.rotary import VLLM, LlamaRotary

from posenc import Rotary
from posenc.audit import CannotCheckError, parity
from posenc.audit.comparing.contents import content_of
from posenc.audit.comparing.differences import difference, ordered
from posenc.audit.comparing.effects import effect
from posenc.frequencies import Geometric, Linear

SMALL = Rotary(16)


def test_ulps_by_hand():
    a = torch.tensor([1.0, -1.0, 0.0, 2.0], dtype=torch.bfloat16).reshape(1, 1, 2, 2)
    b = torch.tensor([1.0078125, -1.0, -0.0, 2.03125], dtype=torch.bfloat16).reshape(1, 1, 2, 2)
    found = difference("x", a, b, torch.tensor([7]))
    # 2^-7 is one unit at 1, and 2^-5 two at 2; zeros of both signs are one number
    assert (found.count, found.by_one, found.most_ulp) == (2, 1, 2)
    assert (found.position, found.pair, found.values) == (7, 0, (1.0, 1.0078125))
    assert ordered(torch.tensor([-1.0, 1.0])).sum() == 0


def test_the_effect_on_scores_is_that_of_hand_made_heads():
    """One key twice as long: its score doubles, and so softmax is that of (0, s) and (0, 2s)."""
    q = torch.tensor([[0.0, 0.0], [1.0, 0.0]])[None, None]
    k = torch.tensor([[0.0, 0.0], [1.0, 0.0]])[None, None]
    found = effect("by hand", (q, k), (q, 2 * k), 1.0)
    before, after = math.e / (1 + math.e), math.e**2 / (1 + math.e**2)
    kl = before * math.log(before / after) + (1 - before) * math.log((1 - before) / (1 - after))
    assert found.score == pytest.approx(1.0)
    assert found.weight == pytest.approx(after - before)
    assert found.divergence == pytest.approx(kl)


def test_equal_profiles_and_those_that_part_at_each_stage():
    same = parity("vllm", "flash-attention", encoding=SMALL, length=200)
    assert same.status == 0
    assert same.effects[0].score == 0.0
    kept = parity("vllm", "sglang", encoding=SMALL, length=200)
    assert [stage.is_none for stage in kept.stages] == [True, True, False]
    assert kept.status == 1
    assert kept.effects[0].score > 0
    angles = parity("vllm", "transformers", encoding=Rotary(Linear(Geometric(16), 3)), length=200)
    assert not angles.stages[0].is_none
    products = parity("vllm", "transformers", encoding=SMALL, length=200)
    assert all(stage.is_none for stage in products.stages)
    assert not products.is_equal
    assert parity("vllm", "vllm-native", encoding=SMALL, length=200, dtype=torch.float32).is_equal


def test_pairings_are_brought_together():
    """torchtune pairs neighbors; in float32 it is transformers with permuted channels."""
    found = parity("transformers", "torchtune", encoding=SMALL, length=64, dtype=torch.float32)
    assert found.is_equal
    assert "q and k are permuted" in found.b[1]
    partial = Rotary(8, head_dim=16)
    found = parity("transformers", "torchtune", encoding=partial, length=64, dtype=torch.float32)
    assert found.is_equal


def test_own_code_against_a_profile():
    """The zoo's module of the transformers' style, and one whose sine is wrong at one position."""
    dim = 32
    found = parity(LlamaRotary, "transformers", encoding=Rotary(dim), length=50)
    assert found.is_equal, found
    assert not found.stages

    class Off(torch.nn.Module):
        def forward(self, q, k, position_ids):
            rotary = Rotary(dim, arithmetic="transformers")
            table = rotary.table(position_ids[0])
            table[position_ids[0] == 33, 1, 5] += 0.25
            return rotary.encode_queries(q, table), rotary.encode_keys(k, table)

    wrong = parity(Off, "transformers", encoding=Rotary(dim), length=50)
    assert (wrong.q.position, wrong.q.pair) == (33, 5)
    assert (wrong.k.position, wrong.k.pair) == (33, 5)
    assert wrong.status == 1


def test_two_own_modules_and_no_configuration():
    found = parity(VLLM, LlamaRotary, length=40, dtype=torch.float32)
    assert found.encoding == ""
    assert found.q.largest < 1e-5


def test_configurations_and_models_of_transformers():
    from transformers import LlamaConfig

    config = LlamaConfig(hidden_size=128, num_attention_heads=2, num_hidden_layers=1)
    found = parity(config, "transformers", config=config, length=60)
    assert found.is_equal


def test_what_cannot_be_compared_is_said():
    with pytest.raises(CannotCheckError, match="computes what a configuration says"):
        parity("vllm", "sglang")
    with pytest.raises(CannotCheckError, match="which has no Linear"):
        parity("torchtune", "exact", encoding=Rotary(Linear(Geometric(8), 2)))
    with pytest.raises(CannotCheckError, match="rotates queries and keys in no form"):
        parity(lambda x: x.sum(), "exact", encoding=SMALL)
    with pytest.raises(ValueError, match="length is 0"):
        parity("vllm", "sglang", encoding=SMALL, length=0)


@pytest.mark.parametrize("form", ["projections", "content"])
def test_weights_of_a_file(tmp_path, form):
    path = tmp_path / "model.safetensors"
    generator = torch.Generator().manual_seed(0)
    if form == "content":
        tensors = {n: 3 * torch.randn(2, 30, 16, generator=generator) for n in ("q", "k")}
    else:
        name = "model.layers.1.self_attn.{}_proj.weight"
        tensors = {
            name.format(n): torch.randn(rows, 24, generator=generator).bfloat16()
            for n, rows in (("q", 64), ("k", 32))
        }
    save_file(tensors, path)
    layer = {} if form == "content" else {"layer": 1}
    found = parity("vllm", "sglang", encoding=SMALL, length=40, weights=path, **layer)
    random, given = found.effects
    assert path.name in given.content
    assert given.tokens == (30 if form == "content" else 40)
    # larger content: larger scores, and larger changes of them
    assert given.spread > 3 * random.spread
    assert given.score > random.score
    save_file({"other": torch.zeros(2)}, path)
    with pytest.raises(CannotCheckError, match="has neither tensors q and k nor"):
        parity("vllm", "sglang", encoding=SMALL, length=40, weights=path)


def test_the_projections_are_of_the_layer_that_is_said(tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    name = "model.layers.{}.self_attn.{}_proj.weight"
    some = torch.randn(32, 24, generator=torch.Generator().manual_seed(0))
    save_file({name.format(i, n): 2**i * some for i in (0, 1, 10) for n in "qk"}, path)
    shapes = {"encoding": SMALL, "length": 20, "weights": path}
    first, second, last = (
        parity("vllm", "sglang", **shapes, layer=i).effects[1] for i in (0, 1, 10)
    )
    assert second.spread == pytest.approx(4 * first.spread, rel=0.01)
    assert last.spread == pytest.approx(4**10 * first.spread, rel=0.01)
    assert "layers.10." in last.content
    with pytest.raises(CannotCheckError, match="of layer 2; it has model"):
        parity("vllm", "sglang", **shapes, layer=2)


def test_nothing_that_is_given_is_left_aside():
    config = {"model_type": "llama", "head_dim": 16, "max_position_embeddings": 64}
    with pytest.raises(ValueError, match="encoding and config are given"):
        parity("vllm", "sglang", encoding=SMALL, config=config)
    with pytest.raises(ValueError, match="layer is 1, and there are no weights"):
        parity("vllm", "sglang", encoding=SMALL, length=20, layer=1)
    with pytest.raises(ValueError, match="said has layout, which is of own implementations"):
        parity("vllm", "sglang", encoding=SMALL, length=20, said={"layout": "bhsd"})
    with pytest.raises(ValueError, match="said has width; it takes arguments"):
        parity("vllm", "sglang", encoding=SMALL, length=20, said={"width": 16})


@pytest.mark.parametrize("names", [("q", "k"), ("q_proj.weight", "k_proj.weight")])
def test_a_layer_of_a_file_that_tells_none_is_refused(tmp_path, names):
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    save_file({name: torch.ones(32, 16) for name in names}, path)
    with pytest.raises(CannotCheckError, match=r"which are of no named layer\. Leave it out"):
        parity("vllm", "sglang", encoding=SMALL, length=20, weights=path, layer=2)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "taken", "queries", "keys"),
    [
        (8, 2, 2, [0, 1, 4, 5], [0, 1]),
        (8, 8, 2, [0, 0, 1, 1], [0, 1]),
        (4, 1, 2, [0, 1, 2, 3], [0, 0]),
        (32, 8, 4, [0, 4, 8, 12], [0, 1, 2, 3]),
        (6, 3, 4, [0, 2, 4, 1], [0, 1, 2, 0]),
    ],
)
def test_queries_meet_the_keys_that_they_have_in_the_model(
    tmp_path, heads, kv_heads, taken, queries, keys
):
    """The first four queries met the first two keys, whosever they were."""
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    numbered = {n: torch.arange(count)[:, None, None].expand(count, 3, 2).float().contiguous()
                for n, count in (("q", heads), ("k", kv_heads))}  # fmt: skip
    save_file(numbered, path)
    q, k, _ = content_of(path, taken, 3, 2, 0, 0)
    assert q[0, :, 0, 0].tolist() == queries
    assert k[0, :, 0, 0].tolist() == keys
    save_file(numbered | {"k": torch.zeros(5, 3, 2)}, path)
    with pytest.raises(CannotCheckError, match=f"{heads} query heads and 5 key heads"):
        content_of(path, taken, 3, 2, 0, 0)


def test_scores_are_multiplied_as_the_configuration_says():
    plain = {"model_type": "granite", "hidden_size": 256, "num_attention_heads": 4}
    other = {**plain, "attention_multiplier": 0.0078125}
    usual, told = (
        parity("vllm", "sglang", config={**plain, "attention_multiplier": scale}, length=20)
        for scale in (0.125, 0.0078125)
    )
    assert told.effects[0].spread == pytest.approx(usual.effects[0].spread / 16)
    assert parity("vllm", "sglang", config=other, length=20) == told


def test_units_of_the_kept_table_are_those_of_its_dtype():
    """Both keep bfloat16, whose neighbors were 65,536 units of float32 apart."""
    scaled = Rotary(Linear(Geometric(64), 3))
    kept = parity("vllm", "transformers", encoding=scaled, length=6000).stages[-1]
    assert kept.by_one > 0
    assert 0 < kept.most_ulp < 2**16


def own(pairing):
    def rotate(q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        rotary = Rotary(32, pairing=pairing)
        table = rotary.table(position_ids)
        return rotary.encode_queries(q, table), rotary.encode_keys(k, table)

    return rotate


def test_own_code_of_another_pairing_is_another_function():
    """Only profiles are permuted for: own code meets the same queries and keys."""
    found = parity(own("half"), own("interleaved"), length=20, dtype=torch.float32)
    assert found.status == 1
    assert "two functions, with the same weights" in found.notes[0]
    meant = Rotary(32, pairing="interleaved")
    found = parity("exact", own("half"), encoding=meant, length=20, dtype=torch.float32)
    assert found.status == 1
    assert "pairs channels half, and interleaved is meant" in found.notes[0]
    assert parity("exact", own("interleaved"), encoding=meant, length=20).is_equal


def test_pairs_of_own_code_are_counted_among_those_that_turn():
    def partial(off):
        def rotate(q, k, position_ids):
            """q: [batch, heads, seq, head_dim]"""
            rotary = Rotary(16, head_dim=32)
            table = rotary.table(position_ids[0])
            table[position_ids[0] == 3, 1, 5] += off
            return rotary.encode_queries(q, table), rotary.encode_keys(k, table)

        return rotate

    found = parity(partial(0), partial(0.5), length=20)
    assert (found.q.position, found.q.pair) == (3, 5)


DYNAMIC = {
    "model_type": "llama", "hidden_size": 128, "num_attention_heads": 2,
    "max_position_embeddings": 64, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0},
}  # fmt: skip


def test_frequencies_by_length_are_those_of_the_length_that_is_said():
    with pytest.raises(CannotCheckError, match="say the length that is meant"):
        parity("transformers", "exact", config=DYNAMIC)
    with pytest.raises(CannotCheckError, match="when vllm chooses which was not read"):
        parity("transformers", "vllm", config=DYNAMIC, length=128)
    short, long = (parity("transformers", "exact", config=DYNAMIC, length=n) for n in (64, 128))
    assert "base=10000.0" in short.encoding
    assert "NTK" in long.encoding
    assert "Fraction(3, 1)" in long.encoding  # 2 · 128 / 64 − 1
    assert "those of rows of 128 tokens" in long.notes[0]


def test_a_profile_is_held_to_the_code_of_the_model():
    """transformers rotates Cohere in float32, and Llama in the dtype of content."""
    from transformers import CohereConfig, LlamaConfig

    size = {"hidden_size": 128, "num_attention_heads": 2, "num_hidden_layers": 1}
    found = [parity("transformers", "exact", config=kind(**size), length=40)
             for kind in (LlamaConfig, CohereConfig)]  # fmt: skip
    assert not found[0].notes
    assert "that of this model gives other bits" in found[1].notes[0]


def test_projections_have_their_biases(tmp_path):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(4 * 32, 16, generator=generator) for _ in "qk"]
    bias = 30 * torch.randn(4 * 32, generator=generator)
    names = [f"layers.0.self_attn.{side}_proj" for side in "qk"]
    stored = {f"{name}.weight": x for name, x in zip(names, weights, strict=True)}
    path = tmp_path / "model.safetensors"
    save_file({**stored, f"{names[1]}.bias": bias}, path)
    _, k, told = content_of(path, 4, 5, 32, 0, 0)
    assert "left out" not in told
    hidden = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    wanted = (hidden @ weights[1].T + bias).unflatten(-1, (4, 32)).transpose(0, 1)
    torch.testing.assert_close(k[0], wanted)
    norm = {"layers.0.self_attn.q_norm.weight": torch.ones(32)}
    save_file({**stored, **norm}, path)
    assert "q_norm.weight left out" in content_of(path, 4, 5, 32, 0, 0)[2]


def test_heads_whose_rotated_part_was_not_seen_are_refused():
    from transformers import PhiConfig

    phi = PhiConfig(hidden_size=64, num_attention_heads=4, num_hidden_layers=1)
    with pytest.raises(CannotCheckError, match="heads of width 16 and build of 8"):
        parity("transformers", phi, config=phi, length=20)


def test_a_dictionary_is_held_to_the_code_of_its_model():
    found = parity("transformers", "exact", config={"model_type": "cohere"}, length=20)
    assert "that of this model gives other bits" in found.notes[0]


@pytest.mark.parametrize("odd", [{}, {"model_type": "nobody"},
                                 {"model_type": "llama", "vocab_size": "many"}])  # fmt: skip
def test_a_configuration_that_transformers_does_not_build_is_compared_all_the_same(odd):
    size = {"hidden_size": 128, "num_attention_heads": 2, "rope_theta": 1e4}
    (note,) = parity("transformers", "exact", config={**size, **odd}, length=20).notes
    assert "(transformers makes no configuration of it)" in note
