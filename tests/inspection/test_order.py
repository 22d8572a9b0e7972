"""Two orders of the same tokens: what a model without positions cannot tell apart."""

import pytest
import torch

from posenc import ALiBi, Positional, Sinusoidal
from posenc.inspection.order import order_effect
from posenc.transformer import Encoder

X = torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "positional", [Positional(), Positional(Sinusoidal(16)), Positional(scores=ALiBi(2))]
)
def test_positions_alone_tell_orders_apart(positional):
    torch.manual_seed(0)
    made = Encoder(16, 2, 2, positional=positional).double().eval()
    order = torch.tensor([3, 0, 4, 1, 2])
    effect, same = order_effect(made, X, order), order_effect(made, X, range(5))
    assert effect.tells_apart(1e-3) is bool(positional.tokens or positional.scores)
    assert max(effect.attention_difference, effect.output_difference) < 1e-12 or (
        min(effect.attention_difference, effect.output_difference) > 1e-3
    )
    assert same.attention_difference == same.output_difference == 0.0
    with pytest.raises(ValueError, match="order"):
        order_effect(made, X, [0, 0, 1, 2, 3])
