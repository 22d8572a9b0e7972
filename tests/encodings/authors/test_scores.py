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
    theirs = """-1 -0.904807894 0 -0.7081453659 0.09519210603 1 -0.4643274982 0.2918546341
        -1.029807894 -0.125 0.5 0.5960705609 -0.625 -1.381831385 -0.5289294391 0.375 -1.199519735
        -0.3818313851 0.4710705609 -0.75"""
    made = seen(kerple(eighths(1, 2, 4, 4, start=0)))
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


def test_kerple_of_powers_with_weights():
    """The same file's ParallelKerplePower, with pos_emb="kerple_power_ap_ap"."""
    kerple, weight = KERPLE(2, "power").double(), KERPLEWeight(2).double()
    for parameter, values in ((kerple.p, (0.5, 1.25)), (kerple.a, (0.75, 0.25)),
                              (weight.p, (1.5, 0.25)), (weight.a, (0.125, 0.5))):  # fmt: skip
        set_to(parameter, *values)
    theirs = """-1 -1.301560564 0 -1.236207297 -0.4190636615 1 -1.233750991 -0.5340187958
        -1.411872677 -0.125 0.5 0.2807143272 -0.625 -1.077412171 -0.4016326649 0.375 -1.245988963
        -0.5256308985 0.2048979948 -0.75"""
    made = seen(kerple(weight(eighths(1, 2, 4, 4, start=0))))
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


def test_fire():
    """chuanyang-Zheng/DAPE@bde344a, DAPE.py: FIRE, which that paper compares with."""
    fire = FIRE(2, hidden=3, threshold=2.0, c=0.25).double()
    fill(*fire.expand.parameters(), *fire.contract.parameters(), start=8)
    set_to(fire.factor, 0.75)
    theirs = """0.390625 0.02932282072 0.390625 -0.1249987092 0.1068567997 0.390625 -0.124999078
        0.01703375764 0.1850228929 0.390625 0.46875 0.7862579757 0.46875 0.9218738656 0.7181220548
        0.46875 0.9218741897 0.7970574554 0.6494306396 0.46875"""
    made = seen(fire(torch.zeros(1, 2, 4, 4).double()))
    torch.testing.assert_close(made, numbers(theirs), **SINGLE)


@pytest.mark.parametrize(
    ("scaled", "theirs"),
    [
        (
            False,
            """0.125 0.75 -0.5780716363 0.04692836367 0.005298087753 -0.1609726595 -0.3332512241
            0.0722849085 0.875 -0.625 0.4645333003 -0.03861900047 0.4299952563 -0.4657008348
            0.02630316843 0.3254758318""",
        ),
        (
            True,
            """0.125 0.75 -0.5649866082 0.06001339181 0.02280603257 -0.1541551976 -0.3388247728
            0.02428902578 0.875 -0.625 0.433987585 0.005017735645 0.3264017983 -0.4232868559
            0.05369877587 0.3268260255""",
        ),
    ],
)
def test_cope(scaled, theirs):
    """facebookresearch/RAM@e6f051f, projects/cope/src/cope/context_position.py.

    ContextPosSelfAttn of 2 heads, 4 tokens and 3 positions, with and without --cope-nodiv.
    """
    cope = CoPE(2, 2, 3, scaled=scaled).double()
    with torch.no_grad():
        cope.weight.copy_(eighths(2, 3, start=4).T)
    q, k, v = (eighths(1, 2, 4, 2, start=n) for n in (1, 2, 3))
    made = attention(q, k, v, is_causal=True, positional=Positional(scores=cope))
    torch.testing.assert_close(made.detach().ravel(), numbers(theirs), **CLOSE)


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
    theirs = """-0.08212807406 0.6346985141 -0.2639261409 -0.3380806155 -0.4098430103 -0.359609334
        0.7208133879 -0.3811380524 -0.06299143544 -0.007973599423 -0.1562825487 0.06139671556
        -0.2495736619 -0.2870495792 0.06618087521 -0.1251855109"""
    torch.testing.assert_close(made.ravel(), numbers(theirs), **CLOSE)


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
    theirs = """-0.2265625 0.3173792445 -0.6875 -0.5210206821 0.656574758 -0.2265625 -0.338359493
        -0.399785335 0.3955442652 -0.171875 0.65625 -0.7547955024 0.65625 -0.3124525032
        -0.1636563525 0.515625 0.6868532831 -0.5835629693 -0.1298256634 -0.03125"""
    torch.testing.assert_close(seen(made), numbers(theirs), **SINGLE)


@pytest.mark.parametrize(
    ("remapping", "after", "theirs"),
    [
        (
            SelfExtend(group=2, window=3),
            (),
            """-0.3125 0.234375 0.3660851661 -0.07664320385 0.05107458495 0.02288366808
            0.5599843264 -0.2133178078 0.1242729388 -0.0727578802 0.02071477938 -0.009120771429
            0.1587480824 -0.03882140492 0.1868909383 -0.0569585755""",
        ),
        (
            ReRoPE(window=3),
            (Temperature(1, 4),),
            """-0.3125 0.234375 0.3660851661 -0.07664320385 0.05107458495 0.02288366808
            0.5599843264 -0.2133178078 0.07780753542 -0.05272227316 -0.08339644317 0.03140354366
            0.4028732968 -0.1546383443 0.05721383682 0.005004117615""",
        ),
        (
            ReRoPE(window=3, leak=4),
            (Temperature(1, 4),),
            """-0.3125 0.234375 0.3660851661 -0.07664320385 0.05107458495 0.02288366808
            0.5599843264 -0.2133178078 0.07943069562 -0.05391622148 -0.06435127277 0.02359287185
            0.3435937776 -0.1301370632 0.119450755 -0.02225677914""",
        ),
        (
            DualChunk(chunk=4, local=2),
            (),
            """-0.3125 0.234375 0.3660851661 -0.07664320385 0.05107458495 0.02288366808
            0.5599843264 -0.2133178096 0.05543790106 -0.04516351013 -0.07724881684 0.03025072499
            0.4236278851 -0.1617280981 0.0672018067 -0.002942998777""",
        ),
    ],
    ids=["self-extend", "rerope", "leaky-rerope", "dual-chunk"],
)
def test_remapped_rotary(remapping, after, theirs):
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
    torch.testing.assert_close(made.ravel(), numbers(theirs), **SINGLE)
