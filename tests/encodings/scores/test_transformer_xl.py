"""Transformer-XL against the equation of its section 3.3, pair by pair, and XLNet's attention."""

import pytest
import torch
from transformers import XLNetConfig
from transformers.models.xlnet.modeling_xlnet import XLNetModel

from posenc import Positional, TransformerXL, attention


@pytest.mark.parametrize("clamp_len", [None, 2])
def test_it_is_the_attention_of_xlnet(drawn, clamp_len):
    """transformers' own, whose queries see keys on both sides, without segments or memories."""
    config = XLNetConfig(vocab_size=5, d_model=8, n_layer=1, n_head=2, d_inner=8, dropout=0.0,
                         clamp_len=clamp_len or -1)  # fmt: skip
    model = XLNetModel(config).double().eval()
    layer, h = drawn(model.layer[0].rel_attn), torch.randn(6, 2, 8).double()
    r = model.relative_positional_encoding(6, 6, bsz=2).double()
    q, k, v = (torch.einsum("ibh,hnd->ibnd", h, each) for each in (layer.q, layer.k, layer.v))
    wanted = layer.rel_attn_core(q, k, v, torch.einsum("ibh,hnd->ibnd", r, layer.r))

    xl = TransformerXL(2, 4, clamp_len=clamp_len).double()
    xl.load_state_dict({"u": layer.r_w_bias, "v": layer.r_r_bias, "weight": layer.r.flatten(1).T})
    q, k, v = (part.permute(1, 2, 0, 3) for part in (q, k, v))
    made = attention(q, k, v, positional=Positional(scores=xl)).permute(2, 0, 1, 3)
    torch.testing.assert_close(made, wanted, rtol=0, atol=1e-5)  # its angles are float32
