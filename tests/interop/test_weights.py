"""Weights in the other pairing: whole models, state dicts, and what is refused."""

import copy

import pytest
import torch
from tests.oracle_models import converting
from transformers import LlamaConfig, LlamaForCausalLM, StableLmConfig, StableLmModel

from posenc import Rotary
from posenc.frequencies import Geometric, YaRN
from posenc.interop.huggingface import (
    RowOrder,
    convert_pairing,
    convert_weights,
    patch,
    positional_setup,
    rotate_as_converted,
    row_orders,
)
from posenc.interop.weights import measured_types

TINY = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip
IDS = torch.arange(1, 10)[None]


def llama(**fields) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**TINY, **fields)).double().eval()


# One type of each layout: heads, norms of heads, latent attention, fused in four orders.

LAYOUTS = ["qwen3", "deepseek_v3", "gpt_neox", "falcon"]
SLOW = pytest.mark.slow("builds a model of each of some 140 types")
OTHERS = [pytest.param(name, marks=SLOW) for name in sorted(measured_types() - {*LAYOUTS})]


@pytest.mark.parametrize("model_type", LAYOUTS + OTHERS)
def test_a_converted_model_gives_the_same_and_comes_back(model_type):
    assert converting.fault(model_type) is None


def test_the_keys_are_those_of_our_own_rotation_of_that_pairing():
    """The oracle is posenc's interleaved rotation, given the projections of the new weights."""
    model = llama()
    attention = model.model.layers[0].self_attn
    seen = {}
    attention.register_forward_pre_hook(
        lambda _, args, kwargs: seen.update(hidden=kwargs["hidden_states"]), with_kwargs=True
    )
    with convert_pairing(model, to="interleaved"), torch.no_grad():
        keys = model(IDS, use_cache=True).past_key_values.layers[0].keys
        flat = attention.k_proj(seen["hidden"]).unflatten(-1, (2, 8)).transpose(1, 2)
    rotary = Rotary(8, pairing="interleaved")
    ours = rotary.encode_keys(flat, rotary.table(torch.arange(9), dtype=torch.float64))
    assert torch.allclose(keys, ours, atol=1e-6)


def test_what_is_done_with_models_goes_on():
    model, longer = llama(), YaRN(Geometric(8), factor=4.0, trained_length=2048)
    neighbor, wanted = llama(), model(IDS).logits
    with patch(model, rotary=longer):
        extended = model(IDS).logits
    with convert_pairing(model, to="interleaved"):
        cache = model(IDS[:, :-1], use_cache=True).past_key_values
        given = model(IDS[:, -1:], past_key_values=cache).logits
        assert torch.allclose(given, wanted[:, -1:], atol=1e-6)
        assert torch.allclose(copy.deepcopy(model)(IDS).logits, wanted, atol=1e-6)
        assert torch.equal(neighbor(IDS).logits, wanted)
        with patch(model, rotary=longer):
            assert torch.allclose(model(IDS).logits, extended, atol=1e-6)


def test_a_saved_model_says_its_pairing_and_gets_its_rotation_back(tmp_path):
    """Without it only angles are measured, and those are right; pairs of the other kind turn."""
    model = llama()
    wanted = model(IDS).logits
    convert_pairing(model, to="interleaved")
    model.save_pretrained(tmp_path)
    (layer, *_) = positional_setup(tmp_path / "config.json")["text"].layers
    assert layer.positional.queries_keys[0].pairing == "interleaved"
    loaded = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float64).eval()
    assert not torch.allclose(loaded(IDS).logits, wanted, atol=1e-6)
    around = torch.nn.Sequential(loaded)
    around.config = {"lr": 1e-3}  # training scripts wrap models, and name their settings so
    for refused in (loaded, around):
        with pytest.raises(ValueError, match="rotate_as_converted"):
            patch(refused)
    patch(rotate_as_converted(loaded))
    assert torch.allclose(loaded(IDS).logits, wanted, atol=1e-6)


def test_norms_of_each_head_are_found():
    config = StableLmConfig(**TINY, qk_layernorm=True, partial_rotary_factor=0.5)
    shapes = {n: tuple(x.shape) for n, x in StableLmModel(config).named_parameters()}
    orders = row_orders(config, shapes)
    assert orders["layers.1.self_attn.q_layernorm.norms.3.weight"] == RowOrder(
        8, 0, 4, elementwise=True
    )


def test_adapters_and_scales_follow_their_rows():
    base = "model.layers.0.self_attn."
    shapes = {
        base + "q_proj.weight": (512, 64), base + "q_proj.weight_scale": (512, 1),
        base + "k_proj.weight": (256, 64), base + "k_proj.weight_scale_inv": (2, 1),
        base + "q_proj.lora_A.weight": (4, 64), base + "q_proj.lora_B.weight": (512, 4),
        base + "q_proj.input_scale": (), base + "v_proj.weight": (256, 64),
        base + "q_proj.output_scale": (1,), base + "k_proj.output_scale": (256,),
    }  # fmt: skip
    config = {"model_type": "llama", "num_hidden_layers": 1, "head_dim": 128,
              "num_attention_heads": 4}  # fmt: skip
    assert [name.removeprefix(base) for name in row_orders(config, shapes)] == [
        "q_proj.weight", "q_proj.weight_scale", "k_proj.weight", "q_proj.lora_B.weight",
        "k_proj.output_scale",
    ]  # fmt: skip


# Refusals.

FOUND = {f"model.layers.0.self_attn.{n}_proj.weight": (64, 64) for n in "qkvo"}
ONE = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1}


@pytest.mark.parametrize(
    ("config", "shapes", "said"),
    [
        (ONE | {"num_hidden_layers": 2}, FOUND, "Layer 1 rotates.* not found"),
        (ONE, {**FOUND, "draft." + next(iter(FOUND)): (64, 64)}, "several places"),
        (ONE | {"head_dim": 48}, FOUND, "no whole groups"),
    ],
)
def test_what_cannot_be_told_is_refused(config, shapes, said):
    with pytest.raises(ValueError, match=said):
        row_orders(config, shapes)


def test_converting_twice_is_refused():
    with pytest.raises(ValueError, match="already"):
        convert_weights({}, {**ONE, "posenc_pairing": "interleaved"}, to="interleaved")


def test_wrong_orders_are_measured(monkeypatch):
    """Planted: the rows of queries are permuted and those of keys are not."""
    model = llama()
    monkeypatch.setattr(
        "posenc.interop.weights.models.row_orders",
        lambda _, shapes: {n: RowOrder(8, 0, 8) for n in shapes if "q_proj" in n},
    )
    with pytest.raises(ValueError, match="change by"):
        convert_pairing(model, to="interleaved")


def test_gradients_reach_the_converted_weights():
    """The gradient of permuted rows is the permuted gradient."""
    model = llama()
    model(IDS).logits.square().sum().backward()
    weight = model.model.layers[0].self_attn.q_proj.weight
    wanted = RowOrder(8, 0, 8).converted(weight.grad, "interleaved")
    model.zero_grad()
    with convert_pairing(model, to="interleaved"):
        model(IDS).logits.square().sum().backward()
    assert torch.allclose(weight.grad, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))


@pytest.mark.compiles
@pytest.mark.slow("traces a model")
def test_a_compiled_model_gives_the_same():
    model = llama()
    wanted = model(IDS).logits
    with convert_pairing(model, to="interleaved"), torch.no_grad():
        assert torch.allclose(torch.compile(model, backend="eager")(IDS).logits, wanted, atol=1e-6)


@pytest.mark.parametrize("adapted", ["q", "k", "qv"])
def test_an_adapter_is_converted_by_itself(adapted):
    """Added to converted weights it gives what it gave when it was added to the model's own."""
    model, base = llama(), "model.layers.1.self_attn."
    drawn = torch.Generator().manual_seed(1)
    adapter = {}
    for name in adapted:
        rows = model.get_submodule(base + f"{name}_proj").out_features
        for leaf, shape in ("lora_A.weight", (2, 32)), ("lora_B.weight", (rows, 2)):
            drawn_now = torch.randn(shape, generator=drawn, dtype=torch.float64)
            adapter[f"base_model.model.{base}{name}_proj.{leaf}"] = drawn_now

    def adapted_logits(held: dict) -> torch.Tensor:
        added = copy.deepcopy(model)
        with torch.no_grad():
            for name in adapted:
                a, b = (held[f"base_model.model.{base}{name}_proj.lora_{x}.weight"] for x in "AB")
                added.get_submodule(base + f"{name}_proj").weight += b @ a
            return added(IDS).logits

    before = adapted_logits(adapter)
    convert_pairing(model, to="interleaved")
    converted = convert_weights(adapter, LlamaConfig(**TINY), to="interleaved")
    # Cosines are float32's own, whichever channels they meet.
    torch.testing.assert_close(adapted_logits(converted), before, rtol=0, atol=1e-6)
    assert float((adapted_logits(adapter) - before).abs().max()) > 1e-3
