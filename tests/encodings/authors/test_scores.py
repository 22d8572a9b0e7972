"""Encodings of scores against numbers that came out of their authors' code."""

import pytest
import torch
from tests.encodings.authors.values import CLOSE, SINGLE, eighths, fill, numbers

from posenc import (
    FIRE,
    KERPLE,
    CoPE,
    DeBERTa,
    DualChunk,
    KERPLEWeight,
    Positional,
    RemappedRotary,
    ReRoPE,
    Rotary,
    SelectiveRoPE,
    SelfExtend,
    Temperature,
    attention,
)

LOWER = torch.ones(4, 4, dtype=torch.bool).tril()


def seen(scores: torch.Tensor) -> torch.Tensor:
    """Those of pairs that are not masked, row by row of one head and then of the other."""
    return scores[0][:, LOWER].detach().ravel()


def set_to(parameter: torch.nn.Parameter, *values: float) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(values, dtype=parameter.dtype))


def test_kerple():
    """chijames/KERPLE@25be3d7, megatron/mpu/layers.py: ParallelKerpleLog."""
    kerple = KERPLE(2).double()
    set_to(kerple.p, 0.5, 1.25)
    set_to(kerple.a, 0.75, 0.25)
    made = seen(kerple(eighths(1, 2, 4, 4, start=0)))
    torch.testing.assert_close(made, numbers("kerple"), **CLOSE)


def test_kerple_of_powers_with_weights():
    """The same file's ParallelKerplePower, with pos_emb="kerple_power_ap_ap"."""
    kerple, weight = KERPLE(2, "power").double(), KERPLEWeight(2).double()
    for parameter, values in ((kerple.p, (0.5, 1.25)), (kerple.a, (0.75, 0.25)),
                              (weight.p, (1.5, 0.25)), (weight.a, (0.125, 0.5))):  # fmt: skip
        set_to(parameter, *values)
    made = seen(kerple(weight(eighths(1, 2, 4, 4, start=0))))
    torch.testing.assert_close(made, numbers("kerple_of_powers_with_weights"), **CLOSE)


def test_fire():
    """chuanyang-Zheng/DAPE@bde344a, DAPE.py: FIRE, which that paper compares with."""
    fire = FIRE(2, hidden=3, threshold=2.0, c=0.25).double()
    fill(*fire.expand.parameters(), *fire.contract.parameters(), start=8)
    set_to(fire.factor, 0.75)
    made = seen(fire(torch.zeros(1, 2, 4, 4).double()))
    torch.testing.assert_close(made, numbers("fire"), **SINGLE)


@pytest.mark.parametrize("scaled", [False, True])
def test_cope(scaled):
    """facebookresearch/RAM@e6f051f, projects/cope/src/cope/context_position.py.

    ContextPosSelfAttn of 2 heads, 4 tokens and 3 positions, with and without --cope-nodiv.
    """
    cope = CoPE(2, 2, 3, scaled=scaled).double()
    with torch.no_grad():
        cope.weight.copy_(eighths(2, 3, start=4).T)
    q, k, v = (eighths(1, 2, 4, 2, start=n) for n in (1, 2, 3))
    made = attention(q, k, v, is_causal=True, positional=Positional(scores=cope))
    torch.testing.assert_close(made.detach().ravel(), numbers(f"cope {scaled}"), **CLOSE)


def test_deberta_beyond_its_last_distance():
    """microsoft/DeBERTa@4d7fe0b, DeBERTa/deberta.

    disentangled_attention_bias of disentangled_attention.py with the buckets of da_utils.py, of one
    head, 4 buckets and 5 positions, in which 8 tokens stand; and products by (3 · 2)^−½. The first
    query and the last.
    """
    deberta = DeBERTa(1, 2, buckets=4, max_distance=5).double()
    keys, queries = (torch.nn.Linear(2, 2).double() for _ in range(2))
    fill(keys.weight, keys.bias, queries.weight, queries.bias, start=2)
    deberta.load(eighths(8, 2, start=1), keys=keys, queries=queries)
    q, k = (eighths(1, 1, 8, 2, start=n) for n in (6, 7))
    made = deberta(q @ k.mT / 2**0.5, q=q, k=k)[0, 0, [0, 7]].detach()
    torch.testing.assert_close(made.ravel(), numbers("deberta_beyond_its_last_distance"), **CLOSE)


def test_selective_rope():
    """timurcarstensen/selective-rope@d12e825, src/selective_rope/modules/rotary.py.

    SelectiveRoPE with gate and bias, its ShortConvolution by torch's Conv1d, its l2_norm written
    out; products of what it turned by 4^−½.
    """
    selective = SelectiveRoPE(2, Rotary(4, base=500_000.0), 8, rank=3, gate=True, bias=True)
    selective = selective.double()
    parameters = (selective.down, selective.up, selective.convolution, selective.bias,
                  selective.gate, selective.gate_bias)  # fmt: skip
    fill(*(each for each in parameters if each is not None), start=1)
    x = eighths(1, 4, 8, start=8)
    q, k = (eighths(1, 4, 2, 4, start=n).transpose(1, 2) for n in (9, 10))
    made = selective(torch.zeros(1, 2, 4, 4).double(), q=q, k=k, q_hidden=x, k_hidden=x)
    torch.testing.assert_close(seen(made), numbers("selective_rope"), **SINGLE)


@pytest.mark.parametrize(
    ("name", "remapping", "after"),
    [
        ("self-extend", SelfExtend(group=2, window=3), ()),
        ("rerope", ReRoPE(window=3), (Temperature(1, 4),)),
        ("leaky-rerope", ReRoPE(window=3, leak=4), (Temperature(1, 4),)),
        ("dual-chunk", DualChunk(chunk=4, local=2), ()),
    ],
)
def test_remapped_rotary(name, remapping, after):
    """Attention of 8 tokens of width 2 with rotary positions, as four patches of Llama have it.

    datamllab/LongLM@cdbbb06, self_extend_patch/Llama_4_40.py: self_extend_forward, groups of 2 and
    a window of 3. bojone/rerope@acfe788, rerope_patch.py and leaky_rerope_patch.py: a window of 3,
    a training length of 4, a leak of 4. HKUNLP/ChunkLlama@2add4d7, chunkllama_attn_replace.py:
    forward token by token behind a cache (the first has none before it), chunks of 4, 2 of them
    local. Their softmax is float32.
    """
    x, rotary = eighths(1, 8, 2, start=1), Rotary(2)
    q, k, v = ((x @ eighths(2, 2, start=n).T).unsqueeze(1) for n in (2, 3, 4))
    scores = (RemappedRotary(1, rotary, remapping), *after)
    positional = Positional(queries_keys=rotary, scores=scores)
    made = attention(q, k, v, is_causal=True, positional=positional)
    torch.testing.assert_close(made.ravel(), numbers(name), **SINGLE)
