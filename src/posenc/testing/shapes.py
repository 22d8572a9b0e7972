"""Output has the shape and the dtype of the input, and arguments do what they say."""

import inspect
import warnings
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from posenc.positions import consecutive
from posenc.testing.cases import Case, Scores, Tensors
from posenc.testing.compare import assert_differs, assert_rounded, assert_same
from posenc.testing.seeding import seed

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

REFUSALS = (ValueError, TypeError, IndexError)
"""Errors that an encoding may raise where it cannot encode."""


def shape_and_dtype(case: Case) -> None:
    """Shape and dtype are kept for every float dtype, any number of batch axes, and no tokens."""
    module, subject = case.module(), case.subject()
    if getattr(module, "has_profile", False):
        made, heads = module.profile(torch.arange(-2, 3)), module.heads  # type: ignore[operator]
        asked = f"profile of 5 distances is {tuple(made.shape)}"
        assert made.shape == (heads, 5), f"{asked}, not [heads, distances] = ({heads}, 5)"
    table = tuple(subject.tables(module, consecutive(6)).shape)
    if isinstance(subject, Scores):
        assert table[-2:] in ((6, 6), (1, 6), (6, 1), (1, 1)), (
            f"table of 6 queries and keys is {table}, not [..., q_len, k_len] = (..., 6, 6)"
        )
    else:
        assert table[:1] == (6,), f"table of 6 positions is {table}, not [seq, ...] = (6, ...)"
    for dtype in DTYPES:
        for batch in ((), (3,), (2, 3)):
            for seq in (0, 1, 6):
                content = subject.content(seq, batch, dtype)
                width = getattr(module, "encoded_dim", content[0].shape[-1])
                called = subject.call(module, content, None)
                for before, after in zip(content, called, strict=False):
                    shape = (*before.shape[:-1], width)
                    what = f"content of shape {tuple(before.shape)}"
                    assert after.shape == shape, f"{what} became {tuple(after.shape)}"
                what = f"{dtype} content of {seq} tokens"
                for after in subject.run(module, content, None):
                    assert after.dtype == dtype, f"{what} became {after.dtype}"
                    assert torch.isfinite(after).all(), f"{what} became infinite or NaN"


def stays_finite(case: Case) -> str | None:
    """Tokens far apart and content of zeros give finite numbers, unless they are refused."""
    module, subject, asked = case.module().eval(), case.subject(), False
    for farthest in (200, 5000, 10**5, 10**7):
        shares = (1, farthest // 40, farthest // 7, farthest // 2, farthest)
        places = torch.tensor(case.far(0, *shares))
        content = subject.content(len(places))
        try:
            made = subject.run(module, content, places)
            zeros = subject.run(module, tuple(map(torch.zeros_like, content)), places)
        except REFUSALS:
            continue
        asked = True
        for part in (*made, *zeros):
            assert torch.isfinite(part).all(), f"infinite or NaN at positions {places.tolist()}"
    return None if asked else "it refuses tokens that far apart"


def dtypes_agree(case: Case) -> None:
    """Content and tables of any float dtype equal those of float64 up to rounding, near and far."""
    _agree(case, consecutive(6))
    for start in case.far(254, 10**6, 2**40, ahead=5):
        with suppress(*REFUSALS):
            _agree(case, consecutive(6, start=start))


def _agree(case: Case, positions: Tensor) -> None:
    subject = case.subject()
    exact_table = subject.tables(case.module(), positions, torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        where = f"in {dtype}, at positions from {int(positions[0])} to {int(positions[-1])}"
        table = subject.tables(case.module(), positions, dtype)
        if table.is_floating_point():
            assert table.dtype == dtype, f"table(dtype={dtype}) gave {table.dtype}"
            assert_rounded(table, exact_table, dtype, f"a table {where}")
        content = subject.content(6, dtype=dtype)
        wide = tuple(part.double() for part in content)
        want = subject.run(case.module().double(), wide, positions)
        for got, exact in zip(subject.run(case.module(), content, positions), want, strict=True):
            assert_rounded(got, exact, dtype, f"content {where}")


def content_is_left_alone(case: Case) -> None:
    """Content and tables are not written to, strides do not matter, and results are new tensors."""
    module, subject = case.module(), case.subject()
    content = subject.content(6)
    kept = tuple(part.clone() for part in content)
    made = subject.run(module, content, None)
    assert_same(content, kept, "the content after the call", bitwise=True)
    strided = tuple(part.mT.contiguous().mT for part in content)
    assert_same(
        subject.run(module, strided, None), made, "transposed strides", bitwise=case.bitwise
    )
    table = subject.tables(module, consecutive(6)).clone()  # some are expanded from one number
    given, kept = (*content, table), (*kept, table.clone())
    for name, use in subject.uses(module, content, table):
        results = use()
        assert_same(given, kept, f"content and table after {name}", bitwise=True)
        for result in results if isinstance(results, tuple) else (results,):
            assert isinstance(result, torch.Tensor)
            whole = any(result.data_ptr() == part.data_ptr() and result.numel() == part.numel()
                        for part in content)  # fmt: skip
            memory = {part.untyped_storage().data_ptr() for part in given}
            assert whole or result.untyped_storage().data_ptr() not in memory, (
                f"{name} returns a view of its content or its table, and no new tensor"
            )


def arguments_matter(case: Case) -> str | None:
    """Every constructor argument changes parameters, tables, results or warnings."""
    names = [
        name
        for name, parameter in inspect.signature(case.build).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    told = {*case.arguments, *case.changes, *FACTORY}
    forgotten = [name for name in names if name not in told]
    assert not forgotten, f"The case has no value for {', '.join(forgotten)}; name one in changes."
    if not case.changes:
        return "the case names no argument to change"
    usual = _observed(case)
    for name, value in case.changes.items():
        try:
            seen = _observed(replace(case, arguments={**case.arguments, name: value}))
        except (ValueError, TypeError, IndexError) as refusal:
            raise AssertionError(f"{name}={value!r} is refused: {refusal}") from refusal
        assert_differs(seen, usual, f"{name}={value!r} changes nothing")
    return None


FACTORY = ("device", "dtype")
"""Arguments that ``parameters_are_made_as_asked`` checks."""


def parameters_are_made_as_asked(case: Case) -> str | None:
    """Learned encodings take ``device=`` and ``dtype=``, and every parameter has an axis."""
    for name, parameter in case.module().named_parameters():
        assert parameter.ndim, f"{name} has no axis; FSDP splits parameters along their first"
    if not list(case.module().parameters()):
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


def scale_and_key_heads(case: Case) -> str | None:
    """The default scale is 1/√head_dim, and each key head serves consecutive query heads."""
    module, subject = case.module().eval(), case.subject()
    if not isinstance(subject, Scores):
        return "it takes no scores"
    scores, q, k, *hidden = subject.content(4)
    read = {"q_hidden": hidden[0], "k_hidden": hidden[0]} if hidden else {}
    at = [subject.lifted(consecutive(4))] * 2
    usual = module(scores, *at, q=q, k=k, **read)
    said = module(scores, *at, q=q, k=k, scale=q.shape[-1] ** -0.5, **read)
    assert_same(said, usual, "the default scale, given", bitwise=False)
    each = k.repeat_interleave(case.heads // case.kv_heads, dim=-3)
    try:
        apart = module(scores, *at, q=q, k=each, **read)
    except REFUSALS:
        return None  # it was built for so many key heads
    assert_same(apart, usual, "one key head for each query head", bitwise=False)
    return None


def _observed(case: Case) -> Tensors:
    """Parameters, tables near and far, results in training, and the number of warnings.

    All axes of the content have one length, so that it fits with axes exchanged.
    """
    module = case.module().train()
    size = case.heads
    widths = {
        "heads": getattr(module, "heads", size),
        "kv_heads": getattr(module, "kv_heads", getattr(module, "heads", size)),
        "head_dim": getattr(module, "head_dim", case.head_dim),
    }
    subject = type(case.subject())(replace(case, **widths))
    seen = [value.detach() for value in module.state_dict().values()]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for start in case.far(0, 200, 10**7):
            positions = case.within(consecutive(size, start=start))
            seed()
            seen.append(subject.tables(module, positions).detach())
            apart = case.within(positions + 3 * consecutive(size))
            seen.append(subject.tables(module, apart).detach())
            content = subject.content(size, (size,))
            seen.extend(part.detach() for part in subject.run(module, content, positions))
    return (*seen, torch.tensor(len(warned)))
