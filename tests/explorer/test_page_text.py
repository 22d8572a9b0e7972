"""What the page says, against the library: at the defaults, at the limits, odd, and with base 1."""

import pytest
import torch

from posenc import Sinusoidal

pytestmark = pytest.mark.slow("the page in a browser")


def fixed(x: float, digits: int = 4) -> str:
    """As the page writes numbers."""
    text = f"{x:.{digits}f}"
    return (text.replace("-", "") if float(text) == 0 else text).replace("-", "−")


DEFAULTS = {"dim": 128, "base": 10_000, "position": 10, "dimension": 0, "offset": 10}
LIMITS = {"dim": 1024, "base": 10_000_000, "position": 4095, "dimension": 1023, "offset": -4095}


@pytest.mark.parametrize(
    "asked",
    [{}, {"length": 4096, **LIMITS}, {"dim": 127, "dimension": 126}, {"base": 1, "dimension": 5}],
    ids=["default", "limits", "odd", "base one"],
)
def test_every_line_that_the_cursor_moves(opened, asked):
    state = DEFAULTS | asked
    p, j, k, d, n = (state[name] for name in ("position", "dimension", "offset", "dim", "base"))
    encoding = Sinusoidal(d, float(n))
    rows = encoding.table(torch.tensor([p, p + k]), dtype=torch.float64)
    found = opened("&".join(f"{name}={value}" for name, value in asked.items()))

    channel = encoding.convention.channel(j, d, float(n))
    value = fixed(rows[0, j].item())
    exponent = f"{j - j % 2}/{d}"
    expected = f"PE({p},{j}) = {channel.function}({p}/{n}^({exponent})) = {value}"
    assert found.text("matrix") == expected

    product, apart = (rows[0] @ rows[1]).item(), (rows[0] - rows[1]).norm().item()
    said = found.text("similarity")
    second = str(p + k).replace("-", "−")
    assert f"PE({p}) · PE({second}) = {fixed(product)}, a cosine of" in said
    assert f"their distance is {fixed(apart)}." in said

    if j == d - 1 and d % 2:
        assert "unavailable" in found.text("shift")
    else:
        after = rows[1, j - j % 2 : j - j % 2 + 2].tolist()
        assert found.text("shift").endswith(
            f"is PE({second}) = ({fixed(after[0])}, {fixed(after[1])})"
        )
