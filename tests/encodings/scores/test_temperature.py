"""Log-n scaling against Qwen's list, and the constants of YaRN and DeepSeek."""

import math

import torch

from posenc import Temperature
from posenc.frequencies import Geometric, YaRN
from posenc.positions import consecutive


def test_it_is_the_list_of_qwen():
    # Qwen: 1 up to the trained length n, then log_n(i) for the i-th token.
    length = 16
    list_ = [math.log(i, length) if i > length else 1.0 for i in range(1, 200)]
    got = Temperature(1, length).table(consecutive(199), consecutive(1), dtype=torch.float64)[:, 0]
    torch.testing.assert_close(got, torch.tensor(list_, dtype=torch.float64), rtol=1e-15, atol=0)


def test_a_constant_is_the_square_of_yarns_factor():
    # YaRN puts √t on queries and keys alike; on scores it is t.
    factor = YaRN(Geometric(64), factor=40.0, trained_length=4096).attention_factor
    temperature = Temperature(2, scale=factor**2)
    scores = torch.randn(1, 2, 3, 3)
    torch.testing.assert_close(temperature(scores), scores * (0.1 * math.log(40) + 1) ** 2)
    assert temperature.is_relative
    assert not Temperature(2, 16).is_relative
