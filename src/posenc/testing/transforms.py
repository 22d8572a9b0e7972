"""What torch makes of an encoding: gradients, against finite differences, and compiled graphs."""

import torch
from torch import Tensor, nn
from torch.autograd.gradcheck import GradcheckError

from posenc.positions import consecutive
from posenc.testing.cases import Subject, Tensors
from posenc.testing.compare import assert_rounded, assert_same

MANY = 256  # beyond so many numbers, differences are taken along random directions
MOST_GRAPHS = 2  # one for the first length, one for all lengths after it


def gradients(subject: Subject) -> None:
    """Gradients by content and by parameters agree with finite differences."""
    double = subject.fresh(torch.float64)
    content = tuple(part.requires_grad_() for part in double.content(5, (2,), torch.float64))
    leaves = (*content, *double.module.parameters())

    def run(*_: Tensor) -> Tensors:
        # Keeps results in the graph whose own graph is cut.
        none = 0 * torch.stack([leaf.sum() for leaf in leaves]).sum()
        return tuple(part + none for part in double.run(content, consecutive(5)))

    many = sum(leaf.numel() for leaf in leaves) > MANY
    try:
        torch.autograd.gradcheck(run, leaves, fast_mode=many)
    except GradcheckError as wrong:
        raise AssertionError(f"gradients are wrong: {wrong}") from wrong


def gradients_change_nothing(subject: Subject) -> None:
    """Results are the same with gradients, under no_grad and in inference mode."""
    content = subject.content(5)
    with torch.enable_grad():
        want = subject.run(tuple(part.clone().requires_grad_() for part in content))
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            got = subject.fresh().run(content)
        assert_same(got, want, f"without gradients, in {mode.__name__}", bitwise=False)


def gradients_stay_finite(subject: Subject) -> None:
    """Every parameter, and the content that matters, gets a finite gradient of its dtype."""
    for dtype in (torch.float32, torch.bfloat16):
        run = subject.fresh()
        content = tuple(part.requires_grad_() for part in run.content(5, dtype=dtype))
        torch.stack([part.float().square().sum() for part in run.run(content)]).sum().backward()
        parts = {f"part {index} of the content": index for index in range(len(content))}
        named = dict(zip(parts, content, strict=True)) | dict(run.module.named_parameters())
        for name, leaf in named.items():
            if leaf.grad is None:
                used = name not in parts or _depends_on(run, parts[name])
                assert not used, f"no gradient reached {name} in {dtype}"
                continue
            assert leaf.grad.dtype == leaf.dtype, f"{name} has a {leaf.grad.dtype} gradient"
            assert torch.isfinite(leaf.grad).all(), f"a gradient in {dtype} is not finite"


def _depends_on(subject: Subject, index: int) -> bool:
    """Whether the result changes with one part of the content."""
    content = subject.content(5)
    other = tuple(part + (at == index) for at, part in enumerate(content))
    return not all(map(torch.equal, subject.run(content), subject.run(other)))


def gradients_of_narrow_content(subject: Subject) -> None:
    """Gradients in float32 and bfloat16 equal those in float64 up to rounding."""
    content = subject.content(6, (3,), torch.bfloat16)  # the same numbers in every dtype
    exact = _gradients(subject.fresh(torch.float64), content, torch.float64)
    for dtype in (torch.float32, torch.bfloat16):
        for got, want in zip(_gradients(subject.fresh(), content, dtype), exact, strict=True):
            if got is not None and want is not None:
                assert_rounded(got, want, dtype, f"a gradient in {dtype}")


def _gradients(subject: Subject, content: Tensors, dtype: torch.dtype) -> list[Tensor | None]:
    """Gradients of a random sum of the results by content and parameters."""
    leaves = tuple(part.to(dtype).requires_grad_() for part in content)
    generator = torch.Generator().manual_seed(0)
    made = [part.double() for part in subject.run(leaves)]
    weights = [torch.randn(part.shape, generator=generator).double() for part in made]
    torch.stack([(p * w).sum() for p, w in zip(made, weights, strict=True)]).sum().backward()
    return [leaf.grad for leaf in (*leaves, *subject.module.parameters())]


class _Run(nn.Module):
    """An encoding as a function of its content, at default positions."""

    def __init__(self, subject: Subject):
        super().__init__()
        self.encoding, self.subject = subject.module, subject

    def forward(self, *content: Tensor) -> Tensors:
        return self.subject.run(content)


def compiled_equals_eager(subject: Subject) -> None:
    """``torch.compile(fullgraph=True)`` gives the eager result within a few roundings."""
    torch.compiler.reset()
    run = _Run(subject)
    compiled = torch.compile(run, fullgraph=True)
    for seq in (6, 9):
        content = subject.content(seq)
        assert_same(compiled(*content), run(*content), f"compiled at {seq} tokens", bitwise=False)


def growing_lengths_do_not_recompile(subject: Subject) -> None:
    """Lengths after the second one do not recompile."""
    torch.compiler.reset()
    graphs = []

    def count(graph: torch.fx.GraphModule, _: list) -> object:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(_Run(subject), fullgraph=True, backend=count)
    for seq in range(5, 40, 5):
        compiled(*subject.content(seq))
    assert len(graphs) <= MOST_GRAPHS, f"7 lengths made {len(graphs)} graphs"


def exports(subject: Subject) -> None:
    """``torch.export`` with a symbolic length gives the eager result at another length."""
    run, content, other = _Run(subject), subject.content(6), subject.content(11)
    shapes = tuple(dict.fromkeys(range(part.ndim), torch.export.Dim.AUTO) for part in content)
    program = torch.export.export(run, content, dynamic_shapes=(shapes,))
    got = tuple(program.module()(*other))
    assert_same(got, run(*other), "exported, at 11 tokens", bitwise=False)


COMPILING = (compiled_equals_eager, growing_lengths_do_not_recompile, exports)  # slow
