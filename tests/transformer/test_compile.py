"""Compiled in one graph, the encoder computes what it computes eagerly, at any length."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from posenc import SHAPE, ALiBi, Learned, PoSE, Positional, Randomized, Rotary, Sinusoidal
from posenc.transformer import Encoder, KeyValueCache

pytestmark = pytest.mark.compiles

EVERYWHERE = {
    "none": lambda: Positional(),
    "fixed": lambda: Positional(Sinusoidal(16), Rotary(4), ALiBi(4)),
    "learned": lambda: Positional(Learned(16, 64)),
}


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


@pytest.mark.slow("two graphs of an encoder")
@pytest.mark.parametrize("padded", [True, False])
def test_growing_lengths_make_one_graph(padded):
    graphs = []

    def count(graph: torch.fx.GraphModule, _: list[Tensor]):
        graphs.append(graph)
        return graph.forward

    encoder = Encoder(16, 4, 1, positional=EVERYWHERE["fixed"](), is_causal=True).eval()
    compiled = torch.compile(encoder, fullgraph=True, backend=count)
    for seq in range(5, 40, 7):
        x, mask = torch.randn(2, seq, 16), torch.ones(2, seq, dtype=torch.bool)
        torch._dynamo.mark_dynamic(x, 1)
        torch._dynamo.mark_dynamic(mask, 1)
        arguments = {"padding_mask": mask} if padded else {}
        assert_close(compiled(x, **arguments), encoder(x, **arguments), atol=1e-5, rtol=0)
    assert len(graphs) == 1


@pytest.mark.slow("an encoder is compiled")
def test_a_graph_whose_numbers_may_all_change_trains():
    """With ``dynamic=True`` a probability of dropout is a symbol too."""
    torch.manual_seed(0)
    encoder = Encoder(8, 2, 1, positional=Positional(Sinusoidal(8)))
    compiled = torch.compile(encoder, backend="eager", fullgraph=True, dynamic=True)
    for length in (3, 5):
        x = torch.randn(1, length, 8)
        torch.testing.assert_close(compiled(x), encoder(x))


@pytest.mark.slow("an encoder is compiled")
@pytest.mark.parametrize("remapping", [SHAPE(9), PoSE(64), Randomized(64)], ids=str)
def test_a_graph_of_any_batch_draws_positions(remapping):
    """Tokens that see themselves alone come out alike, wherever they stand."""
    positional = Positional(queries_keys=Rotary(8), positions=remapping)
    encoder = Encoder(16, 2, 1, positional=positional, window=1)
    compiled = torch.compile(encoder, backend="eager", dynamic=True)
    for batch, length in ((2, 5), (3, 7)):
        x, real = torch.randn(batch, length, 16), torch.ones(batch, length).bool()
        assert_close(compiled(x, padding_mask=real), encoder(x, padding_mask=real))


@pytest.mark.slow("several graphs")
def test_compiling_leaves_the_kept_tables_alone():
    encoder = Encoder(16, 4, 1, positional=EVERYWHERE["fixed"]()).eval()
    torch.compile(encoder, fullgraph=True, backend="eager")(torch.randn(1, 5, 16))
    assert len(encoder.tables.kept) == 0


@torch.no_grad()
def test_decoding_into_a_cache_of_fixed_size_is_one_graph():
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")
    encoder = Encoder(16, 4, 2, positional=EVERYWHERE["fixed"](), is_causal=True).eval()
    step = torch.compile(encoder, fullgraph=True, backend=counter)
    x, real = torch.randn(2, 14, 16), torch.ones(2, 14, dtype=torch.bool)
    real[0, :2] = False
    whole, cache = encoder(x, padding_mask=real), KeyValueCache(size=16)
    encoder(x[:, :4], padding_mask=real[:, :4], cache=cache)
    for place in range(4, 14):
        got = step(x[:, place : place + 1], cache=cache)
        assert_close(got, whole[:, place : place + 1], atol=1e-5, rtol=0)
    assert counter.frame_count == 1
    assert cache.length == 14
