"""Gradients, checked against finite differences."""

import torch

from posenc.positions import consecutive
from posenc.testing.cases import Case


def gradients(case: Case) -> None:
    """First derivatives by content and by every parameter are right."""
    module, subject = case.module().double(), case.subject()
    content = tuple(part.requires_grad_() for part in subject.content(3, (1,), torch.float64))
    parameters = tuple(module.parameters())

    def run(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return subject.run(module, content, consecutive(3))

    assert torch.autograd.gradcheck(run, (*content, *parameters)), "gradients are wrong"


def gradients_stay_finite(case: Case) -> None:
    """A backward pass in float32 and bfloat16 gives finite gradients of the right dtype."""
    for dtype in (torch.float32, torch.bfloat16):
        module, subject = case.module(), case.subject()
        content = tuple(part.requires_grad_() for part in subject.content(5, dtype=dtype))
        made = subject.run(module, content, None)
        torch.stack([part.float().square().sum() for part in made]).sum().backward()
        assert content[0].grad is not None, "no gradient reached the content"
        for leaf in (*content, *module.parameters()):
            if leaf.grad is not None:
                assert leaf.grad.dtype == leaf.dtype, (
                    f"{leaf.dtype} has a {leaf.grad.dtype} gradient"
                )
                assert torch.isfinite(leaf.grad).all(), f"a gradient in {dtype} is not finite"
