"""What is held of each case, and how what the code makes now is compared with it.

A subject is a module with ``CASES``, functions by name that give tensors by name. Float64 may
differ by ``BOUND`` of the largest number, since matrix products are summed in another order
elsewhere; all else is held to the bit. Cases that must agree have one name before an ``@``.
"""

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

FOLDER = Path(__file__).parent
SUBJECTS = ("tables", "kernels", "encodings", "recipes", "attention", "encoder", "shards")
BOUND = 1e-10
BYTES = 2048
"""So many bytes are held as they are, of more their digest."""

MOST, MOST_OF_GRADIENTS, SUMS = 1024, 64, 16
"""So many doubles are held as they are, of more some weighted sums."""

ROUNDINGS = 1e-11
"""Doubles below are what roundings leave of 0, as in gradients of a bias of keys."""


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Whole 256ths from −2 on below 2: floating draws would differ between processors."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-512, 512, shape, generator=generator) / 256).to(dtype)


def settled(module: Any, dtype: torch.dtype = torch.float64) -> Any:
    """The module in evaluation mode, with such numbers as parameters."""
    module = module.to(dtype).eval()
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(*parameter.shape, seed=seed))
    return module


def with_gradients(made: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """Results, and the gradients of a weighted sum of them."""
    sums = [(x * numbers(*x.shape, seed=7 + i)).sum() for i, x in enumerate(made.values())]
    found = torch.autograd.grad(
        torch.stack(sums).sum(), list(wanted.values()), allow_unused=True, materialize_grads=True
    )
    return made | {f"d {name}": g for name, g in zip(wanted, found, strict=True)}


def kept(name: str, x: Tensor) -> Tensor:
    """What is written of one tensor."""
    x = x.detach().contiguous().clone()
    if x.dtype != torch.float64:
        if x.nbytes <= BYTES:
            return x
        digest = sha256(x.flatten().view(torch.uint8).numpy().tobytes()).digest()
        return torch.tensor(list(digest), dtype=torch.uint8)
    if not x.numel() or x.abs().max() < ROUNDINGS:
        return torch.zeros_like(x) if x.numel() <= MOST else x.new_zeros(SUMS)
    if x.numel() <= (MOST_OF_GRADIENTS if name.startswith("d ") else MOST):
        return x
    weighted = numbers(x.numel(), seed=x.numel()) * x.flatten()
    return nn.functional.pad(weighted, (0, -x.numel() % SUMS)).view(-1, SUMS).sum(0)


def cases(subject: str) -> dict[str, Callable[[], dict[str, Tensor]]]:
    return import_module(f"tests.goldens.{subject}").CASES


def keys(subject: str) -> list[str]:
    """The names under which cases are held."""
    return list(dict.fromkeys(case.split("@")[0] for case in cases(subject)))


@cache
def file(subject: str) -> dict[str, dict[str, Tensor]]:
    """What is held of each case."""
    found: dict[str, dict[str, Tensor]] = {}
    path = FOLDER / f"{subject}.safetensors"
    for name, x in (load_file(path) if path.exists() else {}).items():
        key, part = name.rsplit(":", 1)
        found.setdefault(key, {})[part] = x
    return found


def made(subject: str, case: str) -> dict[str, Tensor]:
    """What would be held of a case, made anew."""
    threads = torch.get_num_threads()
    # For small tensors a second thread waits longer than it works.
    torch.set_num_threads(threads if subject == "kernels" else 1)
    try:
        return {name: kept(name, x) for name, x in cases(subject)[case]().items()}
    finally:
        torch.set_num_threads(threads)


def differences(subject: str, key: str, old: dict[str, Tensor] | None = None) -> Iterator[str]:
    """What is said of each tensor that is another than the held one."""
    old = file(subject).get(key, {}) if old is None else old
    module = import_module(f"tests.goldens.{subject}")
    bound = getattr(module, "BOUND", BOUND)
    for case in cases(subject):
        if case.split("@")[0] != key:
            continue
        new = made(subject, case)
        # A backend without a backward pass gives a part of what is held.
        wanted = new.keys() if case in getattr(module, "PARTS", ()) else new.keys() | old.keys()
        for name in sorted(wanted):
            told = f"{subject}, {case}, {name}"
            if name not in new or name not in old:
                yield f"{told}: {'is made no more' if name in old else 'was not held'}"
            elif found := difference(new[name], old[name], bound):
                yield f"{told}: {found}"


def left_over(subject: str) -> list[str]:
    """What is in the file and made by no case."""
    return [
        f"{subject}, {key}: no case makes it" for key in file(subject) if key not in keys(subject)
    ]


def compared(subject: str) -> Iterator[str]:
    """All differences of a subject."""
    yield from left_over(subject)
    for key in keys(subject):
        yield from differences(subject, key)


def write(subject: str) -> None:
    """Hold what the code makes now, by the first of the cases that must agree."""
    held: dict[str, Tensor] = {}
    for key in keys(subject):
        new = made(subject, next(case for case in cases(subject) if case.split("@")[0] == key))
        for name, x in new.items():
            assert x.dtype != torch.float64 or not x.isnan().any(), (key, name)
        found = list(differences(subject, key, new))
        assert not found, "\n".join(found)
        held |= {f"{key}:{name}": x for name, x in new.items()}
    save_file(held, FOLDER / f"{subject}.safetensors")
    file.cache_clear()


def difference(new: Tensor, old: Tensor, bound: float) -> str:
    """Where a tensor is another than the held one; empty where it is not."""
    if old.dtype == new.dtype != torch.float64:  # to the bit, signs of 0 too
        old, new = (x.unsqueeze(-1).contiguous().view(torch.uint8) for x in (old, new))
    most = bound * old[old.isfinite()].abs().max() if old.isfinite().any() else 0.0
    try:
        torch.testing.assert_close(new, old, rtol=0, atol=float(most))
    except AssertionError as found:
        return str(found)
    return ""
