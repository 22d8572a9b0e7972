"""A state dict says by which arguments its numbers are read, and contradictions are refused."""

import copy
import importlib
import io
from pathlib import Path

import pytest
import torch
from tests.encodings.test_set_afterwards import same, seen, shapes
from torch import nn

from posenc import (
    DAPE,
    FIRE,
    ALiBi,
    AxialSinusoidal,
    Cyclic,
    DAPEv2,
    DecomposedRelative,
    FoPE,
    Learned,
    LevelEmbedding,
    Positional,
    RandomFourierFeatures,
    RelativeLogits,
    RePo,
    Rotary,
    Sandwich,
    SelectiveRoPE,
    SwinV2Bias,
    T5Bias,
)
from posenc.frequencies import FromCheckpoint, Geometric, Linear
from posenc.transformer import Encoder

CONTRACTS = Path(__file__).parents[1] / "contracts"
CASES = {
    name: case
    for file in sorted(CONTRACTS.glob("test_*.py"))
    for name, case in importlib.import_module(f"tests.contracts.{file.stem}").CASES.items()
    if next(case.module().parameters(), None) is not None
}
NEIGHBORS, DETR = Rotary(4, pairing="interleaved"), AxialSinusoidal(8, "detr")
LAST = Rotary(4, head_dim=6, rotated="suffix")
ONE_WAY, BOTH_WAYS = T5Bias(2, bidirectional=False), T5Bias(2)
REFUSED = r"saved with bidirectional=True, and this one has bidirectional=False"

MEANT_TO_CHANGE = {
    "base": "a schedule: contexts are extended by changing it",
    "frequencies": "the same",
    "rotary": "the same",
    "clamp_len": "chosen for evaluation, as its authors do",
    "dropout": "acts in training alone",
    "heads_first": "the layout of content, whose shape tells",
    "batch_first": "the same",
    "head_dim": "the same",
}


@pytest.mark.parametrize("name", CASES)
def test_what_changes_the_meaning_of_parameters_is_noticed(name):
    case, noticed = CASES[name], 0
    for argument, value in case.changes.items():
        module, other = case.module(), case.module(**{argument: value})
        if module.state_dict().keys() != other.state_dict().keys():
            continue
        if shapes(module) != shapes(other):
            continue
        if argument in MEANT_TO_CHANGE and argument not in module.meaning:
            continue
        other.load_state_dict(dict(module.state_dict()))
        if same(seen(case, module), seen(case, other)) and argument not in module.meaning:
            case.module(**{argument: value}).load_state_dict(module.state_dict())
            continue
        told = f"saved with .*{argument}=.*this one has .*{argument}=.*dict\\(state_dict\\)"
        with pytest.raises(RuntimeError, match=told):
            case.module(**{argument: value}).load_state_dict(module.state_dict())
        noticed += 1
    case.module().load_state_dict(case.module().state_dict())
    assert noticed or name not in {"t5", "kerple", "swin-v2", "fire", "cope", "time2vec"}


@pytest.mark.parametrize(
    ("saved", "other", "told"),
    [
        (FoPE(8, 2, 10**5, base=100.0), FoPE(8, 2, 10**5), r"frequencies=Geometric\(.*base=100"),
        (DecomposedRelative(2, 4, 4, key_stride=2), DecomposedRelative(2, 4, 4), "key_stride="),
        (FIRE(2, threshold=64.0), FIRE(2), "threshold=64.0"),
        (RelativeLogits(2, 8, clip=2.0), RelativeLogits(2, 8, clip=1.0), "clip=2.0"),
        (Cyclic(2, T5Bias(2), 6), Cyclic(2, T5Bias(2), 8), "period=6"),
        (DAPE(2, Cyclic(2, ALiBi(2), 6)), DAPE(2, Cyclic(2, ALiBi(2), 8)), "bias.period=6"),
        (RePo(2, Rotary(4), 8), RePo(2, NEIGHBORS, 8), "rotary.pairing='half'"),
        (SelectiveRoPE(2, NEIGHBORS, 8), SelectiveRoPE(2, Rotary(4), 8), "rotary.pairing='inter"),
        (RePo(2, LAST, 8), RePo(2, Rotary(4, head_dim=6), 8), "rotary.rotated='suffix'"),
        (LevelEmbedding(AxialSinusoidal(8)), LevelEmbedding(DETR), "of.form='mae'"),
        (
            LevelEmbedding(AxialSinusoidal(8, scale="sqrt_dim")),
            LevelEmbedding(AxialSinusoidal(8)),
            "of.scale='sqrt_dim'",
        ),
        (
            LevelEmbedding(RandomFourierFeatures(8, 2)),
            LevelEmbedding(RandomFourierFeatures(8, 2, seed=1)),
            "of.seed=0",
        ),
        (DAPE(2, ALiBi(2)), DAPE(2, Sandwich(2)), "bias='ALiBi'"),
        (DAPE(2, ALiBi(2)), DAPE(2, ALiBi(2, is_causal=True)), "bias.is_causal=False"),
        (T5Bias(2) + ALiBi(2), T5Bias(2) + Sandwich(2), "parts.1='ALiBi'"),
        (DAPEv2(2, ALiBi(4)[:2]), DAPEv2(2, ALiBi(2)), "bias='RelativeBiasHeads'"),
    ],
)
def test_what_a_shape_does_not_tell(saved, other, told):
    with pytest.raises(RuntimeError, match=f"saved with {told}.*dict\\(state_dict\\)"):
        other.load_state_dict(in_a_file(saved.state_dict()))
    other.load_state_dict(dict(saved.state_dict()))  # as one of an earlier release


def test_schedules_are_told_apart_by_their_numbers():
    state = in_a_file(FoPE(8, 2, 10**5, base=100.0).state_dict())
    rounded = FromCheckpoint(Geometric(8, 100).float32("float32"))
    for frequencies in (Geometric(8, 100), Linear(Geometric(8, 100), 1.0), rounded):
        FoPE(frequencies, 2, 10**5).load_state_dict(state)


def in_a_file(state: dict) -> dict:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    "through", [lambda s: s, in_a_file, copy.deepcopy], ids=["", "file", "copy"]
)
def test_copies_and_files_take_it_along(through):
    state = through(BOTH_WAYS.state_dict())
    with pytest.raises(RuntimeError, match=REFUSED):
        ONE_WAY.load_state_dict(state)
    with pytest.raises(RuntimeError, match=REFUSED):  # torch's strictness is of names
        ONE_WAY.load_state_dict(state, strict=False)
    T5Bias(2).load_state_dict(state)


def test_names_and_numbers_are_those_that_torch_would_have():
    assert list(BOTH_WAYS.state_dict()) == ["weight"]
    plain = nn.Embedding(32, 2)
    plain.load_state_dict(BOTH_WAYS.state_dict())
    ONE_WAY.load_state_dict(plain.state_dict())  # another's checkpoint says nothing


def test_a_change_that_is_meant_is_made_without_it():
    ONE_WAY.load_state_dict(dict(BOTH_WAYS.state_dict()))
    assert torch.equal(ONE_WAY.weight, BOTH_WAYS.weight)


def encoder(bias: nn.Module, **places) -> Encoder:
    return Encoder(8, 2, 1, positional=Positional(scores=bias, **places))


@pytest.mark.parametrize("wrapped", [nn.Sequential, lambda model: nn.ModuleDict({"module": model})])
def test_it_is_found_inside_of_models(wrapped):
    """Inside of ``DistributedDataParallel`` all names begin with ``module.`` too."""
    state = wrapped(encoder(T5Bias(2))).state_dict()
    wrapped(encoder(T5Bias(2))).load_state_dict(state)
    with pytest.raises(RuntimeError, match=r"T5Bias \(.*positional\.scores\.0\) were " + REFUSED):
        wrapped(encoder(T5Bias(2, bidirectional=False))).load_state_dict(state)


def test_names_that_are_cut_as_torch_cuts_them_keep_it():
    state = nn.ModuleDict({"module": encoder(T5Bias(2))}).state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    with pytest.raises(RuntimeError, match=REFUSED):
        encoder(T5Bias(2, bidirectional=False)).load_state_dict(state)


def test_contexts_are_extended_as_ever():
    short = encoder(ALiBi(2), queries_keys=Rotary(4))
    long = encoder(ALiBi(2, alibi_bias_max=4), queries_keys=Rotary(Geometric(4, base=500.0)))
    long.load_state_dict(short.state_dict())
    wide = SwinV2Bias(2, window=8, pretrained_window=4, hidden=8)
    wide.load_state_dict(SwinV2Bias(2, window=4, hidden=8).state_dict())
    with pytest.raises(RuntimeError, match=r"Build it with pretrained_window=\(4, 4\)"):
        SwinV2Bias(2, window=8, hidden=8).load_state_dict(
            SwinV2Bias(2, window=4, hidden=8).state_dict()
        )


def test_rows_that_begin_elsewhere_are_other_positions():
    with pytest.raises(RuntimeError, match="saved with offset=2, and this one has offset=0"):
        Learned(8, 10).load_state_dict(Learned(8, 8, offset=2).state_dict())
