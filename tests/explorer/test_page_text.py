"""What the page says, against the library: at the defaults, at the limits, odd, and with base 1."""

import re

import pytest
import torch

from posenc import Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS

pytestmark = pytest.mark.slow("the page in a browser")


def fixed(x: float, digits: int = 4) -> str:
    """As the page writes numbers."""
    text = f"{x:.{digits}f}"
    return (text.replace("-", "") if float(text) == 0 else text).replace("-", "−")


STATES = {
    "": {"length": 50, "dim": 128, "base": 10000, "position": 10, "dimension": 0, "offset": 10},
    "length=4096&dim=1024&base=10000000&position=4095&dimension=1023&offset=-4095": {
        "length": 4096,
        "dim": 1024,
        "base": 10000000,
        "position": 4095,
        "dimension": 1023,
        "offset": -4095,
    },
    "dim=127&dimension=126": {
        "length": 50,
        "dim": 127,
        "base": 10000,
        "position": 10,
        "dimension": 126,
        "offset": 10,
    },
    "base=1&dimension=5": {
        "length": 50,
        "dim": 128,
        "base": 1,
        "position": 10,
        "dimension": 5,
        "offset": 10,
    },
}


@pytest.mark.parametrize("link", STATES, ids=["default", "limits", "odd", "base one"])
def test_every_line_that_the_cursor_moves(opened, link):
    state = STATES[link]
    p, j, k, d, n = (state[name] for name in ("position", "dimension", "offset", "dim", "base"))
    encoding = Sinusoidal(d, float(n))
    rows = encoding.table(torch.tensor([p, p + k]), dtype=torch.float64)
    found = opened(link)

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


def test_the_closest_pair_is_the_librarys(opened):
    for link, dim, base in (("", 128, 1e4), ("base=1", 128, 1.0), ("dim=127&base=3", 127, 3.0)):
        table = Sinusoidal(dim, base).table(torch.arange(50), dtype=torch.float64)
        apart = torch.pdist(table).min().item()
        assert f"{fixed(apart)} apart" in opened(link).text("closest")


def test_every_convention_in_words(opened):
    found = opened("dim=14&dimension=3&length=20")
    for name, convention in CONVENTIONS.items():
        found.page.select_option("#convention", name)
        encoding = Sinusoidal(14, convention=name)
        value = encoding.table(torch.tensor([10]), dtype=torch.float64)[0, 3].item()
        assert found.text("matrix").endswith(f"= {fixed(value)}"), name
        warned = "no exact shift" in found.page.inner_text("#notices")
        assert warned is not convention.sincos(14, 1e4).paired, name


def test_bfloat16_shows_the_rounded_number(opened):
    value = Sinusoidal(128).table(torch.tensor([10]), dtype=torch.bfloat16)[0, 0].item()
    assert opened("dtype=bfloat16").text("matrix").endswith(f"= {fixed(value)}")
    kept = len(torch.arange(400).to(torch.bfloat16).unique())
    assert f"of 400 positions {kept} stay apart" in opened("length=400").text("bfloat16")


@pytest.mark.parametrize("link", ["convention=double_exponent", "dim=3&base=1", "dim=2&length=2"])
def test_the_numbers_of_every_figure_are_numbers_or_words(opened, link):
    """Where there are no pairs, no schedule or a single one, too."""
    found = opened(link)
    found.page.evaluate(
        "() => document.querySelectorAll('details').forEach((each) => (each.open = true))"
    )
    found.settle()
    tables = found.page.locator("[data-numbers]").all_text_contents()
    assert len(tables) > 20
    for text in tables:
        assert not re.search("undefined|NaN|null", text), text
