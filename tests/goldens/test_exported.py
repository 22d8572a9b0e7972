"""Exported programs hold torch's operators alone, so they load where posenc is not installed."""

import pytest
import torch

from posenc import ALiBi, Positional, Rotary, Sinusoidal
from posenc.kernels.operators import NATIVE
from posenc.transformer import Encoder, TokenEmbedding

PARTS = {
    "sinusoidal": Positional(tokens=Sinusoidal(16)),
    "rotary": Positional(queries_keys=Rotary(8)),
    "ALiBi": Positional(scores=ALiBi(2)),
}


class Model(torch.nn.Module):
    def __init__(self, positional: Positional):
        super().__init__()
        self.embedding = TokenEmbedding(11, 16, scale="sqrt_dim")
        self.encoder = Encoder(16, 2, 1, positional=positional, is_causal=True)

    def forward(self, ids):
        return self.encoder(self.embedding(ids))


@pytest.mark.compiles
@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("strict", [True, False])
def test_no_operator_of_ours_is_exported(name, strict):
    model, ids = Model(PARTS[name]).eval(), torch.tensor([[3, 1, 4, 1, 5]])
    program = torch.export.export(model, (ids,), strict=strict)
    targets = {str(node.target) for node in program.graph.nodes}
    assert not [target for target in targets if target.startswith("posenc")]
    torch.testing.assert_close(program.module()(ids), model(ids))


@pytest.mark.compiles
def test_a_compiled_graph_calls_ours():
    rotary, seen = Rotary(8), []

    def noted(graph, _):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    x = torch.randn(1, 2, 5, 8)
    torch.compile(lambda x: rotary(x, x + 1), backend=noted, fullgraph=True)(x)
    assert any(target.startswith("posenc.rotary") for target in seen) is NATIVE
