"""What is refused by its numbers is refused in graphs, which look when they run."""

import pytest
import torch

import posenc
from posenc import attention

pytestmark = pytest.mark.compiles
X = torch.linspace(-1, 1, 6 * 16).view(1, 1, 6, 16)


@pytest.mark.slow("C++ is compiled")
def test_a_compiled_lookup_does_not_count_from_the_end():
    encoding = posenc.Sinusoidal(16)
    table = encoding.table(range(8))
    compiled = torch.compile(lambda at: encoding.encode(X[0], table, at), fullgraph=True)
    running = torch.arange(6)
    assert torch.equal(compiled(running), encoding.encode(X[0], table, running))
    with pytest.raises(RuntimeError, match="A position is negative"):
        compiled(running - 1)


@pytest.mark.slow("a graph is made for each")
def test_what_is_mapped_over_is_not_looked_at():
    def packed(ends):
        return attention(X, X, X, cu_seqlens=ends)

    ends = torch.tensor([[0, 2, 6], [0, 3, 6]])
    compiled = torch.compile(torch.vmap(packed), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(ends), torch.stack([packed(row) for row in ends]))
