"""Output has the shape and the dtype of the input, and arguments do what they say."""

import inspect
import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import product

import torch

from posenc.positions import consecutive
from posenc.testing.cases import Case, Scores, Subject, Tensors, seed
from posenc.testing.compare import assert_differs, assert_rounded, assert_same

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
FACTORY = ("device", "dtype")  # arguments that ``parameters_are_made_as_asked`` checks
REFUSALS = (ValueError, TypeError, IndexError)  # which it may raise where it cannot encode


def shape_and_dtype(subject: Subject) -> None:
    """Shape and dtype are kept for every float dtype, any number of batch axes, and no tokens."""
    module, table = subject.module, tuple(subject.tables(consecutive(6)).shape)
    if subject.claims("has_profile"):
        made, wanted = tuple(module.profile(torch.arange(-2, 3)).shape), (module.heads, 5)
        assert made == wanted, f"profile is {made}, not [heads, distances] = {wanted}"
    if isinstance(subject, Scores):
        fits, form = table[-2:] in ((6, 6), (1, 6), (6, 1), (1, 1)), "[..., q_len, k_len]"
    else:
        fits, form = table[:1] == (6,), "[seq, ...]"
    assert fits, f"table of 6 positions is {table}, not {form}"
    sizes = product(DTYPES, ((), (3,), (2, 3)), (0, 1, 6))
    for dtype, batch, seq in sizes:
        content = subject.content(seq, batch, dtype)
        width = subject.claims("encoded_dim", content[0].shape[-1])
        for before, after in zip(content, subject.call(content), strict=False):
            told = f"content of shape {tuple(before.shape)} became {tuple(after.shape)}"
            assert after.shape == (*before.shape[:-1], width), told
        what = f"{dtype} content of {seq} tokens"
        for after in subject.run(content):
            assert after.dtype == dtype, f"{what} became {after.dtype}"
            assert torch.isfinite(after).all(), f"{what} became infinite or NaN"


def stays_finite(subject: Subject) -> str | None:
    """Tokens far apart and content of zeros give finite numbers, unless they are refused."""
    asked = False
    for farthest in (200, 5000, 10**5, 10**7):
        shares = (1, farthest // 40, farthest // 7, farthest // 2, farthest)
        places = torch.tensor(subject.case.far(0, *shares))
        content = subject.content(len(places))
        with suppress(*REFUSALS):
            made = subject.run(content, places)
            made += subject.run(tuple(map(torch.zeros_like, content)), places)
            asked = True
            for part in made:
                assert torch.isfinite(part).all(), f"infinite or NaN at positions {places.tolist()}"
    return None if asked else "it refuses tokens that far apart"


def dtypes_agree(subject: Subject) -> None:
    """Content and tables of any float dtype equal those of float64 up to rounding, near and far."""
    _agree(subject, 0)
    for start in subject.case.far(254, 10**6, 2**40, ahead=5):
        with suppress(*REFUSALS):
            _agree(subject, start)


def _agree(subject: Subject, start: int) -> None:
    """Compare 6 tokens from ``start`` on."""
    positions, double = consecutive(6, start=start), subject.fresh(torch.float64)
    exact = subject.tables(positions, torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        where = f"in {dtype}, at positions from {start} on"
        table = subject.tables(positions, dtype)
        if table.is_floating_point():
            assert table.dtype == dtype, f"table(dtype={dtype}) gave {table.dtype}"
            assert_rounded(table, exact, dtype, f"a table {where}")
        content = subject.content(6, dtype=dtype)
        want = double.run(tuple(part.double() for part in content), positions)
        assert_rounded(subject.run(content, positions), want, dtype, f"content {where}")


def content_is_left_alone(subject: Subject) -> None:
    """Content and tables are not written to, strides do not matter, and results are new tensors."""
    content, bitwise = subject.content(6), subject.case.bitwise
    kept = tuple(part.clone() for part in content)
    made = subject.run(content)
    assert_same(content, kept, "the content after the call", bitwise=True)
    strided = tuple(part.mT.contiguous().mT for part in content)
    assert_same(subject.run(strided), made, "transposed strides", bitwise=bitwise)
    table = subject.tables(consecutive(6)).clone()  # some are expanded from one number
    given, kept = (*content, table), (*kept, table.clone())
    memory = {part.untyped_storage().data_ptr() for part in given}
    whole = {(part.data_ptr(), part.numel()) for part in content}  # which may be given back
    for name, use in subject.uses(content, table).items():
        results = use()
        assert_same(given, kept, f"content and table after {name}", bitwise=True)
        for result in results if isinstance(results, tuple) else (results,):
            is_new = result.untyped_storage().data_ptr() not in memory
            told = f"{name} returns a view of its content or its table, and no new tensor"
            assert is_new or (result.data_ptr(), result.numel()) in whole, told


def arguments_matter(subject: Subject) -> str | None:
    """Every constructor argument changes parameters, tables, results or warnings."""
    case = subject.case
    told = {*case.arguments, *case.changes, *FACTORY}
    forgotten = [
        name
        for name, each in inspect.signature(case.build).parameters.items()
        if name not in told and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    assert not forgotten, f"The case has no value for {', '.join(forgotten)}; name one in changes."
    if not case.changes:
        return "the case names no argument to change"
    usual = _observed(case)
    for name, value in case.changes.items():
        try:
            seen = _observed(replace(case, arguments={**case.arguments, name: value}))
        except REFUSALS as refusal:
            raise AssertionError(f"{name}={value!r} is refused: {refusal}") from refusal
        assert_differs(seen, usual, f"{name}={value!r} changes nothing")
    return None


def _observed(case: Case) -> Tensors:
    """Parameters, tables near and far, results in training, and the number of warnings.

    All axes of the content have one length, so that it fits with axes exchanged.
    """
    module, size = case.module().train(), case.heads
    usual = {"heads": size, "kv_heads": getattr(module, "heads", size), "head_dim": case.head_dim}
    widths = {name: getattr(module, name, each) for name, each in usual.items()}
    subject = replace(case, **widths).subject().of(module)
    seen = [value.detach() for value in module.state_dict().values()]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for start in case.far(0, 200, 10**7):
            last = 2**62 if case.limit is None else case.limit - 1
            near, apart = ((start + step * consecutive(size)).clamp(max=last) for step in (1, 4))
            seed()
            made = subject.tables(near), subject.tables(apart)
            made += subject.run(subject.content(size, (size,)), near)
            seen.extend(part.detach() for part in made)
    return (*seen, torch.tensor(len(warned)))


def parameters_are_made_as_asked(subject: Subject) -> str | None:
    """Learned encodings take ``device=`` and ``dtype=``, and every parameter has an axis."""
    case, learned = subject.case, dict(subject.module.named_parameters())
    for name, parameter in learned.items():
        assert parameter.ndim, f"{name} has no axis; FSDP splits parameters along their first"
    if not learned:
        return "it learns nothing"
    if not inspect.isclass(case.build):
        return "it is built by a function, whose arguments are not those of the class"
    missing = [name for name in FACTORY if name not in inspect.signature(case.build).parameters]
    assert not missing, f"it learns parameters and takes no {' and no '.join(missing)}"
    for name, parameter in case.module(device="meta", dtype=torch.float64).named_parameters():
        asked = parameter.is_meta and parameter.dtype == torch.float64
        assert asked, f"{name} is {parameter.dtype} on {parameter.device}, not float64 on meta"
    for name, parameter in case.module(dtype=torch.bfloat16).named_parameters():
        assert parameter.dtype == torch.bfloat16, f"{name} is {parameter.dtype}, not bfloat16"
        assert torch.isfinite(parameter).all(), f"{name} was not initialized"
    return None


def scale_and_key_heads(subject: Subject) -> str | None:
    """The default scale is 1/√head_dim, and each key head serves consecutive query heads."""
    if not isinstance(subject, Scores):
        return "it takes no scores"
    case, content, at = subject.case, subject.content(4), consecutive(4)
    usual = subject.called(content, at)
    said = subject.called(content, at, scale=case.head_dim**-0.5)
    assert_same(said, usual, "the default scale, given", bitwise=False)
    scores, q, k, *hidden = content
    each = k.repeat_interleave(case.heads // case.kv_heads, dim=-3)
    with suppress(*REFUSALS):  # where it was built for so many key heads
        apart = subject.called((scores, q, each, *hidden), at)
        assert_same(apart, usual, "one key head for each query head", bitwise=False)
    return None
