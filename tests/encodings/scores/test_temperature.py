"""Log-n scaling against Qwen's list, and the constants of YaRN and DeepSeek."""

import math

import torch

from posenc import Temperature
from posenc.positions import consecutive


def test_it_is_the_list_of_qwen():
    # Qwen: 1 up to the trained length n, then log_n(i) for the i-th token.
    length = 16
    list_ = [math.log(i, length) if i > length else 1.0 for i in range(1, 200)]
    got = Temperature(1, length).table(consecutive(199), consecutive(1), dtype=torch.float64)[:, 0]
    torch.testing.assert_close(got, torch.tensor(list_, dtype=torch.float64), rtol=1e-15, atol=0)
