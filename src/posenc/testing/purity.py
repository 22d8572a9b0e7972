"""An encoding is a function: calls, casts, copies and checkpoints do not change it."""

import copy
import io
import pickle
from contextlib import nullcontext
from itertools import permutations

import torch
from torch.utils._python_dispatch import BaseTorchDispatchMode
from torch.utils._pytree import tree_any

from posenc.positions import consecutive
from posenc.testing.cases import Subject, Tensors, seed
from posenc.testing.compare import assert_near, assert_rounded, assert_same


def purity(subject: Subject) -> None:
    """An encoding that was used with other dtypes and lengths equals a fresh one."""
    for dtype in (torch.bfloat16, torch.float64, torch.float16, torch.float32):
        for seq in (9, 3, 5):
            subject.run(subject.content(seq, dtype=dtype))
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        content = subject.content(7, dtype=dtype)
        want = subject.fresh().run(content)
        assert_same(subject.run(content), want, f"used before, {dtype}", bitwise=True)


def training_changes_nothing_but_by_chance(subject: Subject) -> str | None:
    """Without random numbers, training gives the results of evaluation."""
    content, made = subject.content(7), []
    subject.module.train()
    for number in (1, 1, 2):
        seed(number)
        made.append(subject.run(content))
    assert_same(made[1], made[0], "training again with the same seed", bitwise=True)
    subject.module.eval()
    after = subject.run(content)
    assert_same(after, subject.fresh().run(content), "after training", bitwise=True)
    if not all(map(torch.equal, made[0], made[2])):
        return "it draws random numbers in training"
    assert_same(made[0], after, "training", bitwise=True)
    return None


def casts(subject: Subject) -> None:
    """Casting a module changes its tables by the rounding of its parameters only."""
    positions, learns = consecutive(7), list(subject.module.parameters())
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        want = _rounded(subject, dtype).tables(positions)
        cast, back = subject.fresh(dtype), subject.fresh(dtype)
        back.module.float()
        assert_same(back.tables(positions), want, f"cast to {dtype} and back", bitwise=True)
        got, what = cast.tables(positions, torch.float32), f"cast to {dtype}"
        assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, not {want.dtype}"
        rounds = learns and got.is_floating_point()
        eps = max(torch.finfo(each).eps for each in (dtype, torch.float32)) if rounds else 0.0
        assert_near(got, want, 16 * eps, what, least=0.0)


def narrow_encodings(subject: Subject) -> None:
    """A narrow module on narrow content equals float64 up to rounding, near and far."""
    seq = 6
    for dtype in (torch.bfloat16, torch.float16):
        wide, narrow = _rounded(subject, dtype), subject.fresh(dtype)
        wide.module.double()
        content = subject.content(seq, dtype=dtype)
        for last in subject.case.far(seq - 1, 200):
            positions = consecutive(seq, start=last - seq + 1)
            want = wide.run(tuple(part.double() for part in content), positions)
            what = f"cast to {dtype}, at position {last}"
            assert_rounded(narrow.run(content, positions), want, dtype, what)


def _rounded(subject: Subject, dtype: torch.dtype) -> Subject:
    """The encoding in float32, with parameters rounded to ``dtype``."""
    made = subject.fresh()
    for parameter in made.module.parameters():
        parameter.data = parameter.data.to(dtype).float()
    return made


def autocast(subject: Subject) -> None:
    """Autocast changes neither tables nor content."""
    content, positions = subject.content(7), consecutive(7)
    table, made = subject.tables(positions), subject.run(content, positions)
    for narrow, other in permutations((torch.bfloat16, torch.float16)):
        with torch.autocast("cpu", dtype=other):
            subject.tables(positions, narrow)
            for after in subject.run(subject.content(7, dtype=narrow), positions):
                assert after.dtype == narrow, f"autocast to {other} made {after.dtype} of {narrow}"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = subject.fresh()
        assert_same(inside.tables(positions), table, "table in autocast", bitwise=True)
        assert_same(inside.run(content, positions), made, "content in autocast", bitwise=True)


def default_dtype(subject: Subject) -> None:
    """torch.set_default_dtype does not change an encoding that was built before."""
    positions, content, before = consecutive(7), subject.content(7), torch.get_default_dtype()
    made: list[Tensors] = []
    try:
        for dtype in (before, torch.float16):
            torch.set_default_dtype(dtype)
            # no kernels of ours run under the second
            for mode in (nullcontext(), BaseTorchDispatchMode()):
                with mode:
                    seed()
                    tables = subject.tables(positions, torch.float64), subject.tables(positions)
                    made.append((*tables, *subject.run(content, positions)))
    finally:
        torch.set_default_dtype(before)
    assert_same(made[2] + made[3], made[0] + made[1], "default dtype", bitwise=True)


def copies(subject: Subject) -> None:
    """deepcopy, pickle and the state dict reproduce the encoding."""
    content, module = subject.content(7), subject.module
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1e-3)
    stream, loaded = io.BytesIO(), subject.fresh().module
    torch.save(module.state_dict(), stream)
    stream.seek(0)
    loaded.load_state_dict(torch.load(stream))
    pickled, copied = pickle.loads(pickle.dumps(module)), copy.deepcopy(module)
    for name, other in {"deepcopy": copied, "pickle": pickled, "state dict": loaded}.items():
        assert_same(subject.of(other).run(content), subject.run(content), name, bitwise=True)


def meta_device(subject: Subject) -> None:
    """An encoding built on meta works after ``to_empty`` and ``load_state_dict``."""
    content = subject.content(7)
    with torch.device("meta"):
        empty = subject.fresh()
        assert empty.tables(consecutive(7, device="meta")).is_meta
    filled = empty.of(empty.module.to_empty(device="cpu"))
    filled.module.load_state_dict(subject.module.state_dict())
    assert_same(filled.run(content), subject.run(content), "to_empty, then loaded", bitwise=True)


REGISTERED = {"_parameters", "_buffers", "_modules"}  # where torch keeps what it casts and saves


def owns_parameters_only(subject: Subject) -> None:
    """It has no buffers and hides no tensors, which a cast or a checkpoint would change or miss."""
    for name, part in subject.module.named_modules():
        where = f"{type(part).__name__} {name}".strip()
        assert not dict(part.named_buffers(recurse=False)), f"{where} owns a buffer"
        kept = {key: value for key, value in vars(part).items() if key not in REGISTERED}
        hidden = [key for key, value in kept.items() if tree_any(torch.is_tensor, value)]
        assert not hidden, f"{where} keeps a tensor in {', '.join(hidden)}"
