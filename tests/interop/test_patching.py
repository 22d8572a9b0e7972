"""Our rotary encoding inside tiny random models of transformers, and out of them again."""

import copy

import mpmath
import pytest
import torch
from tests.patched_models.small import IDS, built, logits, near
from torch import nn

from posenc import Rotary
from posenc.interop.huggingface import patch, rotary_from_config


@pytest.mark.compiles
@pytest.mark.parametrize(
    "name", ["llama", pytest.param("gemma3", marks=pytest.mark.slow("it compiles a model"))]
)
def test_it_compiles_whole_and_once_for_all_positions(name):
    from torch._dynamo.testing import CompileCounter

    model, counter = built(name), CompileCounter()
    patch(model)
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    for start in (0, 1000, 2**40):
        positions = start + torch.arange(IDS.shape[1])[None]
        got = logits(compiled, position_ids=positions, use_cache=False)
        near(got, logits(model, position_ids=positions))
    assert counter.frame_count == 1


# Exactness


class MultiplePrecision(nn.Module):
    """cos and sin of multiple-precision angles, for the frequencies of a module."""

    def __init__(self, rotary: Rotary):
        super().__init__()
        self.turns = rotary.frequencies.turns()

    def forward(self, x, position_ids, layer_type=None):
        with mpmath.workprec(300):
            unit = 2 * mpmath.pi / mpmath.mpf(2) ** 192
            angles = [[int(p) * t * unit for t in self.turns] for p in position_ids[0]]
            cos, sin = (
                torch.tensor([[[float(f(a)) for a in row] * 2 for row in angles]])
                for f in (mpmath.cos, mpmath.sin)
            )
        return cos.to(x.dtype), sin.to(x.dtype)


@pytest.mark.parametrize(("start", "drift"), [(10**6, 1e-3), (10**7, 1e-2)])
def test_at_long_positions_the_unpatched_model_drifts_and_ours_does_not(start, drift):
    model, positions = built(), start + torch.arange(IDS.shape[1])[None]
    for layer in model.model.layers:  # as sharp as trained attention, or nothing would show
        layer.self_attn.q_proj.weight.data.mul_(20)
        layer.self_attn.k_proj.weight.data.mul_(20)
    exact = copy.deepcopy(model).double()
    exact.model.rotary_emb = MultiplePrecision(rotary_from_config(model.config))
    truth = logits(exact, position_ids=positions)
    unpatched = (logits(model, position_ids=positions) - truth).abs().max().item()
    with patch(model):
        ours = (logits(model, position_ids=positions) - truth).abs().max().item()
    assert unpatched > drift
    assert ours < 1e-5


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_model_in_bfloat16_keeps_its_positions(name):
    model = built(name).bfloat16()
    with patch(model) as patched:
        angles = patched.angles[0]
        positions = torch.tensor([[256, 257, 10**6, 10**6 + 1]])
        kind = None if "all" in angles.rotaries else "full_attention"
        cos, sin = angles(torch.zeros(1, 4, 1, dtype=torch.bfloat16), positions, kind)
        exact = angles.rotaries[kind or "all"].table(positions, dtype=torch.float64)
        half = cos.shape[-1] // 2
        assert (cos[..., :half].double() - exact[..., 0, :]).abs().max() <= 2**-9 * 1.3
        assert len(torch.cat([cos, sin], -1)[0].unique(dim=0)) == 4


def test_no_cast_damages_the_angles():
    model, ask = built(), (torch.zeros(1, 1, 1), torch.tensor([[10**6]]))
    patch(model)
    before = model.model.rotary_emb(*ask)
    model.bfloat16().float()
    assert all(map(torch.equal, model.model.rotary_emb(*ask), before))
