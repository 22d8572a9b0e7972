"""torch.compile and torch.export: one graph, the same numbers, any length."""

import torch
from torch import Tensor, nn

from posenc.testing.cases import Subject, Tensors
from posenc.testing.compare import assert_same

MOST_GRAPHS = 2  # one for the first length, one for all lengths after it


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
