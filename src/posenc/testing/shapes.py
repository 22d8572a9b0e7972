"""The one law of shapes: what comes out has the shape and the dtype of what went in."""

import inspect

import torch

from posenc.positions import consecutive
from posenc.testing.cases import Case, Tensors
from posenc.testing.compare import assert_differs, assert_same

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def shape_and_dtype(case: Case) -> None:
    """Every float dtype, batch axes of any number, one token and none keep shape and dtype."""
    module, subject = case.module(), case.subject()
    for dtype in DTYPES:
        for batch in ((), (3,), (2, 3)):
            for seq in (0, 1, 6):
                content = subject.content(seq, batch, dtype)
                for before, after in zip(content, subject.run(module, content, None), strict=False):
                    what = f"{dtype} content of shape {tuple(before.shape)}"
                    assert after.shape == before.shape, f"{what} came out as {tuple(after.shape)}"
                    assert after.dtype == dtype, f"{what} came out as {after.dtype}"
                    assert torch.isfinite(after).all(), f"{what} came out with infinities or NaN"


def content_is_left_alone(case: Case) -> None:
    """The content is not written to, and may have any strides."""
    module, subject = case.module(), case.subject()
    content = subject.content(6)
    kept = tuple(part.clone() for part in content)
    made = subject.run(module, content, None)
    assert_same(content, kept, "the content after the call", bitwise=True)
    strided = tuple(part.mT.contiguous().mT for part in content)
    assert_same(
        subject.run(module, strided, None), made, "transposed strides", bitwise=case.bitwise
    )


def arguments_matter(case: Case) -> None:
    """Every constructor argument changes something that can be seen."""
    names = [
        name
        for name, parameter in inspect.signature(case.build).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    forgotten = [name for name in names if name not in {*case.arguments, *case.changes}]
    assert not forgotten, (
        f"The case says nothing of {', '.join(forgotten)}: name a value in changes."
    )
    for name, value in case.changes.items():
        seen, usual = _observed(case, {name: value}), _observed(case, {})
        assert_differs(seen, usual, f"{name}={value!r} changes nothing that can be seen")


def integers_only(case: Case) -> None:
    """Floating and boolean positions are refused: they collide, or mean a mask."""
    module, subject = case.module(), case.subject()
    for positions in (consecutive(4).float(), consecutive(4).bool()):
        refusal = None
        try:
            subject.tables(module, positions)
        except TypeError as error:
            refusal = str(error)
        assert refusal, f"positions of {positions.dtype} were taken without a word"
        assert "int64" in refusal, f"the error does not say what is expected: {refusal}"


def _observed(case: Case, changes: dict) -> Tensors:
    """Parameters, tables near and far, and results in training, of equal content."""
    module, subject = case.module(**changes).train(), case.subject()
    seq = 2  # as long as the batch, so that content fits with its axes exchanged
    seen = [value.detach() for value in module.state_dict().values()]
    for start in case.far(0, 200, 10**7):
        positions = consecutive(seq, start=start)
        seen.append(subject.tables(module, positions).detach())
        seen.append(
            subject.tables(module, positions + 3 * consecutive(seq)).detach()
        )  # farther apart
        content = type(subject)(case).content(seq)
        torch.manual_seed(0)
        try:
            seen.extend(part.detach() for part in subject.run(module, content, positions))
        except (ValueError, TypeError) as refusal:  # another width: the content no longer fits
            seen.append(torch.tensor([ord(letter) for letter in str(refusal)]))
    return tuple(seen)
