"""What models with ALiBi or T5's biases give stays when these are ours."""

import pytest
import torch
from tests.patched_models.biased import (
    CLOSE,
    DECODERS,
    HOLES,
    IDS,
    LENGTH,
    MODELS,
    REAL,
    both,
    built,
    decoders,
    inputs,
    some,
)
from transformers import DynamicCache

from posenc.interop.huggingface import patch_biases

MASKS = {"whole": None, "padded": REAL, "with holes": HOLES}


@pytest.mark.parametrize("name", some(MODELS, ("bloom", "mpt", "falcon", "t5", "umt5")))
@pytest.mark.parametrize("mask", MASKS)
def test_logits_stay(name, mask):
    """Bloom measures distances in real tokens, MPT and T5 in places of the row."""
    named = inputs(name, MASKS[mask])
    theirs, by_ours = both(name, lambda model: model(**named).logits)
    kept = slice(None)
    if name in DECODERS and MASKS[mask] is not None:
        kept = MASKS[mask].bool()
    torch.testing.assert_close(by_ours[kept], theirs[kept], rtol=2e-5, atol=2e-5)


@decoders
def test_steps_with_a_cache_stay(name):
    def run(model):
        cache, found = DynamicCache(config=model.config), []
        for begin, end in ((0, 140), (140, 145), (145, 146)):
            named = {"past_key_values": cache, "attention_mask": REAL[:, :end]}
            found.append(model(IDS[:, begin:end], **named).logits[:, -1])
        return torch.stack(found)

    theirs, by_ours = both(name, run)
    torch.testing.assert_close(by_ours, theirs, **CLOSE)


@pytest.mark.parametrize("name", some([n for n in MODELS if n != "pop2piano"], ("mpt", "t5")))
def test_the_same_is_generated(name):
    def run(model, **cache):
        named = {"attention_mask": REAL, "max_new_tokens": 4, "do_sample": False}
        return model.generate(IDS, **named, **cache)

    theirs, by_ours = both(name, run)
    assert torch.equal(by_ours, theirs)
    with patch_biases(built(name)):
        assert torch.equal(run(built(name), cache_implementation="static"), theirs)


@torch.no_grad()
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["bloom", "falcon", "mpt"])
def test_a_query_that_sees_later_keys_has_the_models_bias_for_them(name, mask, monkeypatch):
    """Theirs rises with the number of the key, on both sides of the query."""
    if name == "mpt" and MASKS[mask] is None:
        return  # transformers makes no mask then, and fails
    model = built(name)
    monkeypatch.setattr(model.config, "is_causal", False, raising=False)
    named = inputs(name, MASKS[mask])
    theirs, by_ours = both(name, lambda model: model(**named, use_cache=False).logits)
    kept = slice(None) if MASKS[mask] is None else MASKS[mask].bool()
    torch.testing.assert_close(by_ours[kept], theirs[kept], **CLOSE)


def test_a_mask_of_a_prefix_that_sees_itself_is_honored_by_mpt():
    seen = torch.ones(LENGTH, LENGTH).bool().tril()
    seen[:50, :50] = True
    mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
    theirs, by_ours = both("mpt", lambda model: model(IDS, attention_mask=mask).logits)
    torch.testing.assert_close(by_ours, theirs, **CLOSE)


def test_the_bias_of_falcon_is_no_longer_rounded():
    """Its own is bfloat16: at 4999 · 2⁻² steps are 8, so each of two keys is 4 off; over √8."""
    with patch_biases(built("falcon")) as patched:
        assert 0.5 < patched.own_error <= 8 / 8**0.5
        assert patched.biases[0].slopes[0] == 2.0**-2 / 8**0.5
    with patch_biases(built("bloom")) as patched:
        assert patched.own_error < 1e-3


@pytest.mark.parametrize(
    ("name", "heads"),
    [  # Bloom 560M, 3B and 176B; MPT 7B and 30B; Falcon RW 1B and 7B
        ("bloom", 16), ("bloom", 32), ("bloom", 112), ("mpt", 32), ("mpt", 64), ("falcon", 32),
        ("falcon", 64),
    ],
)  # fmt: skip
def test_models_of_published_head_counts_are_taken(name, heads):
    """Bloom raises a rounded base to the power of a head's number: more heads, more rounding."""
    cls, config = DECODERS[name]
    narrow = {"d_model": 2 * heads, "n_layers": 1, "n_heads": heads} if name == "mpt" else {
        "hidden_size": 2 * heads, "n_layer": 1, "n_head": heads, "num_hidden_layers": 1,
        "num_attention_heads": heads}  # fmt: skip
    model = cls(type(config)(**config.to_dict() | narrow)).eval()
    with torch.no_grad():
        theirs = model(IDS[:1]).logits
        with patch_biases(model) as patched:
            assert patched.biases[0].heads == heads
            if name != "falcon":  # which rounds its slopes to bfloat16, and far keys with them
                torch.testing.assert_close(model(IDS[:1]).logits, theirs, **CLOSE)
