"""torch.compile and torch.export: one graph, the same numbers, any length."""

import torch
from torch import Tensor, nn

from posenc.testing.cases import Case, Tensors
from posenc.testing.compare import assert_same

MOST_GRAPHS = 2  # one for the first length, one for all lengths after it


class _Run(nn.Module):
    """An encoding as a function of its content, at default positions."""

    def __init__(self, case: Case):
        super().__init__()
        self.encoding, self.subject = case.module(), case.subject()

    def forward(self, *content: Tensor) -> Tensors:
        return self.subject.run(self.encoding, content, None)


def compiled_equals_eager(case: Case) -> None:
    """``torch.compile(fullgraph=True)`` gives the eager result within a few roundings."""
    torch.compiler.reset()
    run = _Run(case)
    compiled = torch.compile(run, fullgraph=True)
    for seq in (6, 9):
        content = case.subject().content(seq)
        assert_same(compiled(*content), run(*content), f"compiled at {seq} tokens", bitwise=False)


def growing_lengths_do_not_recompile(case: Case) -> None:
    """Lengths after the second one do not recompile."""
    torch.compiler.reset()
    graphs = []

    def count(graph: torch.fx.GraphModule, _: list) -> object:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(_Run(case), fullgraph=True, backend=count)
    for seq in range(5, 40, 5):
        compiled(*case.subject().content(seq))
    assert len(graphs) <= MOST_GRAPHS, f"7 lengths made {len(graphs)} graphs"


def exports(case: Case) -> None:
    """``torch.export`` with a symbolic length gives the eager result at another length."""
    run, subject = _Run(case), case.subject()
    shapes = tuple(_symbolic(part.ndim) for part in subject.content(6))
    program = torch.export.export(run, subject.content(6), dynamic_shapes=(shapes,))
    content = subject.content(11)
    got = program.module()(*content)
    assert_same(tuple(got), run(*content), "exported, at 11 tokens", bitwise=False)


def _symbolic(axes: int) -> dict[int, object]:
    return dict.fromkeys(range(axes), torch.export.Dim.AUTO)
