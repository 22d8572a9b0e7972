"""Gradients, checked against finite differences."""

import torch

from posenc.positions import consecutive
from posenc.testing.cases import Case

MANY = 512
"""Of more numbers, differences are taken along random directions, not one by one."""


def gradients(case: Case) -> None:
    """First derivatives by content and by every parameter are right."""
    module, subject = case.module().double(), case.subject()
    content = tuple(part.requires_grad_() for part in subject.content(3, (1,), torch.float64))
    parameters = tuple(module.parameters())

    def run(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return subject.run_all(module, content, consecutive(3))

    leaves = (*content, *parameters)
    many = sum(leaf.numel() for leaf in leaves) > MANY
    assert torch.autograd.gradcheck(run, leaves, fast_mode=many), "gradients are wrong"


def gradients_stay_finite(case: Case) -> None:
    """A backward pass in float32 and bfloat16 gives finite gradients of the right dtype.

    Each parameter gets one, and so does each part of the content that the result depends on.
    """
    for dtype in (torch.float32, torch.bfloat16):
        module, subject = case.module(), case.subject()
        parts = subject.content(5, dtype=dtype)
        content = tuple(part.requires_grad_() for part in parts)
        made = subject.run_all(module, content, None)
        torch.stack([part.float().square().sum() for part in made]).sum().backward()
        named = {f"part {index} of the content": part for index, part in enumerate(content)}
        for name, leaf in (*named.items(), *module.named_parameters()):
            if leaf.grad is None:
                used = name not in named or _depends_on(case, int(name.split()[1]))
                assert not used, f"no gradient reached {name} in {dtype}"
                continue
            assert leaf.grad.dtype == leaf.dtype, f"{leaf.dtype} has a {leaf.grad.dtype} gradient"
            assert torch.isfinite(leaf.grad).all(), f"a gradient in {dtype} is not finite"


def _depends_on(case: Case, index: int) -> bool:
    """Whether the result changes with one part of the content."""
    module, subject = case.module(), case.subject()
    content = subject.content(5)
    other = tuple(part + (at == index) for at, part in enumerate(content))
    before, after = (subject.run_all(module, given, None) for given in (content, other))
    return any(not torch.equal(one, two) for one, two in zip(before, after, strict=True))
