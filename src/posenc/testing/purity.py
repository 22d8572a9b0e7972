"""An encoding is a function: calls, casts, copies and checkpoints do not change it."""

import copy
import io
import pickle
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any

from posenc.positions import consecutive
from posenc.testing.cases import Case, Tensors
from posenc.testing.compare import assert_rounded, assert_same
from posenc.testing.seeding import seed


def purity(case: Case) -> None:
    """An encoding that was used with other dtypes and lengths equals a fresh one."""
    subject, used = case.subject(), case.module()
    for dtype in (torch.bfloat16, torch.float64, torch.float16, torch.float32):
        for seq in (9, 3, 5):
            subject.run(used, subject.content(seq, dtype=dtype), None)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        content = subject.content(7, dtype=dtype)
        want = subject.run(case.module(), content, None)
        assert_same(subject.run(used, content, None), want, f"used before, {dtype}", bitwise=True)


def training_changes_nothing_but_by_chance(case: Case) -> str | None:
    """Without random numbers, training gives the results of evaluation."""
    subject, module = case.subject(), case.module().train()
    content, made = subject.content(7), []
    for number in (1, 1, 2):
        seed(number)
        made.append(_used(case, module, content))
    assert_same(made[1], made[0], "training again with the same seed", bitwise=True)
    after = _used(case, module.eval(), content)
    assert_same(after, _used(case, case.module(), content), "after training", bitwise=True)
    if not all(torch.equal(one, other) for one, other in zip(made[0], made[2], strict=True)):
        return "it draws random numbers in training"
    assert_same(made[0], after, "training", bitwise=True)
    return None


def _used(case: Case, module: torch.nn.Module, content: Tensors) -> Tensors:
    """Its table, and the results of one call and of each of its methods."""
    subject = case.subject()
    table = subject.tables(module, consecutive(7))
    made = (table, *subject.call(module, content, None))
    for _, use in subject.uses(module, content, table):
        result = use()
        made = (*made, *(result if isinstance(result, tuple) else (result,)))
    return made  # type: ignore[return-value]


def casts(case: Case) -> None:
    """Casting a module changes its tables by the rounding of its parameters only."""
    subject, positions = case.subject(), consecutive(7)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        want = subject.tables(_rounded(case, dtype), positions)
        back = subject.tables(case.module().to(dtype).float(), positions)
        assert_same(back, want, f"cast to {dtype} and back", bitwise=True)
        got, what = (
            subject.tables(case.module().to(dtype), positions, torch.float32),
            f"cast to {dtype}",
        )
        if not (list(case.module().parameters()) and got.is_floating_point()):
            assert_same(got, want, what, bitwise=True)
            continue
        assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, not {want.dtype}"
        eps = max(torch.finfo(each).eps for each in (dtype, torch.float32))
        far, slack = (got - want).abs().max().item(), 16 * eps * want.abs().max().item()
        assert far <= slack, f"{what}: differs by {far:.3g} (allowed: {slack:.3g})"


def narrow_encodings(case: Case) -> None:
    """A narrow module on narrow content equals float64 up to rounding, near and far."""
    subject, seq = case.subject(), 6
    for dtype in (torch.bfloat16, torch.float16):
        wide, narrow = _rounded(case, dtype).double(), case.module().to(dtype)
        content = subject.content(seq, dtype=dtype)
        for last in case.far(seq - 1, 200):
            positions = consecutive(seq, start=last - seq + 1)
            want = subject.run(wide, tuple(part.double() for part in content), positions)
            for got, exact in zip(subject.run(narrow, content, positions), want, strict=True):
                assert_rounded(got, exact, dtype, f"cast to {dtype}, at position {last}")


def _rounded(case: Case, dtype: torch.dtype) -> torch.nn.Module:
    """The encoding in float32, with parameters rounded to ``dtype``."""
    module = case.module()
    for parameter in module.parameters():
        parameter.data = parameter.data.to(dtype).float()
    return module


def autocast(case: Case) -> None:
    """Autocast changes neither tables nor content."""
    subject, module = case.subject(), case.module()
    content, positions = subject.content(7), consecutive(7)
    table, made = subject.tables(module, positions), subject.run(module, content, positions)
    for narrow, other in ((torch.bfloat16, torch.float16), (torch.float16, torch.bfloat16)):
        narrow_content = subject.content(7, dtype=narrow)
        with torch.autocast("cpu", dtype=other):
            subject.tables(module, positions, narrow)
            for after in subject.run(module, narrow_content, positions):
                assert after.dtype == narrow, (
                    f"autocast to {other} turned {narrow} to {after.dtype}"
                )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = case.module()
        assert_same(subject.tables(inside, positions), table, "table in autocast", bitwise=True)
        for before, after in zip(made, subject.run(inside, content, positions), strict=True):
            assert after.dtype == before.dtype, f"autocast turned {before.dtype} into {after.dtype}"
            assert_same(after, before, "content in autocast", bitwise=True)


def default_dtype(case: Case) -> None:
    """torch.set_default_dtype does not change an encoding that was built before."""
    subject, module, positions = case.subject(), case.module().eval(), consecutive(7)
    content, before = subject.content(7), torch.get_default_dtype()

    def seen() -> tuple[torch.Tensor, ...]:
        seed()
        wide = subject.tables(module, positions, torch.float64)
        return wide, subject.tables(module, positions), *subject.run(module, content, positions)

    want, watched = seen(), _watched(seen)
    try:
        torch.set_default_dtype(torch.float16)
        got, got_watched = seen(), _watched(seen)
    finally:
        torch.set_default_dtype(before)
    assert_same(got, want, "default dtype", bitwise=True)
    assert_same(got_watched, watched, "default dtype, without kernels", bitwise=True)


class _Watching(TorchDispatchMode):
    """Runs every operation unchanged; kernels of ours do not run under it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _watched(seen: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[torch.Tensor, ...]:
    with _Watching():
        return seen()


def copies(case: Case) -> None:
    """deepcopy, pickle and the state dict reproduce the encoding."""
    subject, module = case.subject(), case.module()
    content = subject.content(7)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1e-3)
    want = _used(case, module, content)
    stream = io.BytesIO()
    torch.save(module.state_dict(), stream)
    stream.seek(0)
    loaded = case.module()
    loaded.load_state_dict(torch.load(stream))
    for name, other in (
        ("deepcopy", copy.deepcopy(module)),
        ("pickle", pickle.loads(pickle.dumps(module))),
        ("state dict", loaded),
    ):
        assert_same(_used(case, other, content), want, name, bitwise=True)


def meta_device(case: Case) -> None:
    """An encoding built on meta works after ``to_empty`` and ``load_state_dict``."""
    subject, module = case.subject(), case.module()
    with torch.device("meta"):
        empty = case.module()
        assert subject.tables(empty, consecutive(7, device="meta")).is_meta
    empty = empty.to_empty(device="cpu")
    empty.load_state_dict(module.state_dict())
    content = subject.content(7)
    got, want = _used(case, empty, content), _used(case, module, content)
    assert_same(got, want, "to_empty, then loaded", bitwise=True)


REGISTERED = frozenset({"_parameters", "_buffers", "_modules"})
"""Where torch keeps the tensors that it casts and saves with a module."""


def owns_parameters_only(case: Case) -> None:
    """It has no buffers and hides no tensors, which a cast or a checkpoint would change or miss."""
    for name, part in case.module().named_modules():
        where = f"{type(part).__name__} {name}".strip()
        assert not dict(part.named_buffers(recurse=False)), f"{where} owns a buffer"
        kept = {key: value for key, value in vars(part).items() if key not in REGISTERED}
        tensors = {key: tree_any(torch.is_tensor, value) for key, value in kept.items()}
        hidden = [key for key, found in tensors.items() if found]
        assert not hidden, f"{where} keeps a tensor in {', '.join(hidden)}"
