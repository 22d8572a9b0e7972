"""Gradients, checked against finite differences."""

import torch
from torch.autograd.gradcheck import GradcheckError

from posenc.positions import consecutive
from posenc.testing.cases import Case, Tensors
from posenc.testing.compare import assert_rounded, assert_same

MANY = 256
"""Beyond so many numbers, differences are taken along random directions."""


def gradients(case: Case) -> None:
    """Gradients by content and by parameters agree with finite differences."""
    module, subject = case.module().double(), case.subject()
    content = tuple(part.requires_grad_() for part in subject.content(5, (2,), torch.float64))
    leaves = (*content, *module.parameters())

    def run(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # Keeps results in the graph whose own graph is cut.
        none = 0 * torch.stack([leaf.sum() for leaf in leaves]).sum()
        return tuple(part + none for part in subject.run(module, content, consecutive(5)))

    many = sum(leaf.numel() for leaf in leaves) > MANY
    try:
        torch.autograd.gradcheck(run, leaves, fast_mode=many)
    except GradcheckError as wrong:
        raise AssertionError(f"gradients are wrong: {wrong}") from wrong


def gradients_change_nothing(case: Case) -> None:
    """Results are the same with gradients, under no_grad and in inference mode."""
    subject, content = case.subject(), case.subject().content(5)
    with torch.enable_grad():
        asked = tuple(part.clone().requires_grad_() for part in content)
        want = subject.run(case.module(), asked, None)
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            got = subject.run(case.module(), content, None)
        assert_same(got, want, f"without gradients, in {mode.__name__}", bitwise=False)


def gradients_stay_finite(case: Case) -> None:
    """Every parameter, and the content that matters, gets a finite gradient of its dtype."""
    for dtype in (torch.float32, torch.bfloat16):
        module, subject = case.module(), case.subject()
        parts = subject.content(5, dtype=dtype)
        content = tuple(part.requires_grad_() for part in parts)
        made = subject.run(module, content, None)
        torch.stack([part.float().square().sum() for part in made]).sum().backward()
        named = {f"part {index} of the content": part for index, part in enumerate(content)}
        for name, leaf in (*named.items(), *module.named_parameters()):
            if leaf.grad is None:
                used = name not in named or _depends_on(case, int(name.split()[1]))
                assert not used, f"no gradient reached {name} in {dtype}"
                continue
            assert leaf.grad.dtype == leaf.dtype, f"{name} has a {leaf.grad.dtype} gradient"
            assert torch.isfinite(leaf.grad).all(), f"a gradient in {dtype} is not finite"


def gradients_of_narrow_content(case: Case) -> None:
    """Gradients in float32 and bfloat16 equal those in float64 up to rounding."""
    subject = case.subject()
    content = subject.content(6, (3,), torch.bfloat16)  # the same numbers in every dtype
    exact = _gradients(case, content, torch.float64)
    for dtype in (torch.float32, torch.bfloat16):
        for got, want in zip(_gradients(case, content, dtype), exact, strict=True):
            if got is not None and want is not None:
                assert_rounded(got, want, dtype, f"a gradient in {dtype}")


def _gradients(case: Case, content: Tensors, dtype: torch.dtype) -> list[torch.Tensor | None]:
    """Gradients of a random sum of the results by content and parameters."""
    module, subject = case.module(), case.subject()
    module = module.double() if dtype == torch.float64 else module
    leaves = tuple(part.to(dtype).requires_grad_() for part in content)
    generator = torch.Generator().manual_seed(0)
    made = [part.double() for part in subject.run(module, leaves, None)]
    weights = [torch.randn(part.shape, generator=generator).double() for part in made]
    torch.stack([(p * w).sum() for p, w in zip(made, weights, strict=True)]).sum().backward()
    return [leaf.grad for leaf in (*leaves, *module.parameters())]


def _depends_on(case: Case, index: int) -> bool:
    """Whether the result changes with one part of the content."""
    module, subject = case.module(), case.subject()
    content = subject.content(5)
    other = tuple(part + (at == index) for at, part in enumerate(content))
    before, after = (subject.run(module, given, None) for given in (content, other))
    return any(not torch.equal(one, two) for one, two in zip(before, after, strict=True))
