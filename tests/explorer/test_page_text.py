"""What the page says, against the library: at the defaults, at the limits, odd, and with base 1."""

import re
from math import exp

import pytest
import torch

from posenc import Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.frequencies import Geometric, YaRN

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


def test_the_formula_of_the_shift_follows_where_its_numbers_do_not_change(opened):
    found = opened("base=10000000&dimension=126&position=3")
    found.to("matrix")
    found.page.focus('[data-name="matrix"]')
    found.page.keyboard.press("ArrowDown")
    assert "PE(4) = (0.0000, 1.0000)" in found.text("shift")
    drawn = found.page.locator('[data-live="shift"] math').all_text_contents()
    assert "PE\u2061(4)" in drawn[0]
    assert "PE\u2061(14)" in drawn[-1]


def test_the_numbers_of_the_ruler_follow_the_cursor(opened):
    found = opened()
    found.to("similarity")
    table = found.page.locator('[data-numbers="ruler"]')
    table.locator("summary").click()
    found.page.evaluate("() => { location.hash = '#dimension=100' }")
    found.page.locator("#summary", has_text="j 100").wait_for(state="attached")
    found.settle()
    assert "dimension 100" in table.text_content()


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


def test_moving_query_and_key_together_keeps_their_score(opened):
    found = opened("pairing=interleaved&moved=-3&offset=4")
    found.to("relatives")
    heads = found.page.locator('[data-live="scores"] thead th').all_inner_texts()
    # The query stands at the cursor and the offset on, so that the offset is query − key.
    assert heads[-3:] == ["as they are", "m = 14, n = 10", "m = 11, n = 7"]
    rows = found.page.locator('[data-live="scores"] tbody tr').all_inner_texts()
    plain, placed, moved = (float(x) for x in rows[-1].replace("−", "-").split()[-3:])
    assert placed == moved != plain
    assert "at distance m − n = 4 it is" in found.text("rotary")


def test_yarn_in_words(opened):
    found = opened("factor=8&trained=4096")
    yarn = YaRN(Geometric(128), factor=8.0, trained_length=4096)
    assert f"= {fixed(yarn.attention_factor)}." in found.text("scaling")
    pairs = zip(yarn.radians(), Geometric(128).radians(), strict=True)
    alone = sum(float(a) == float(b) for a, b in pairs)
    assert f"leaves {alone} pairs alone" in found.text("lengths")


def shown(number: float, like: str) -> str:
    """A number with as many decimals as another one was printed with."""
    return f"{number:.{len(like.partition('.')[2])}f}"


@pytest.mark.parametrize("cell", ["row=3&column=2", "row=0&column=5", "row=5&column=4"])
def test_softmax_arithmetic_adds_up(opened, cell):
    found = opened(cell)
    found.to("encoder")
    for side in ("off", "on"):
        lines = found.page.locator(f'[data-cell="{side}"] p').all_inner_texts()
        numbers = [re.findall(r"-?\d+\.\d+", line.replace("−", "-")) for line in lines]
        product, scaled = float(numbers[0][-1]), float(numbers[1][-1])
        power, total, weight = map(float, numbers[2])
        terms = re.findall(r"-? ?\d+\.\d+", lines[0].replace("−", "-").split(" = ")[1])
        added = sum(float(each.replace(" ", "")) for each in terms)
        # Each number follows from those before it, as they are printed.
        assert len(terms) == 8
        assert shown(added, numbers[0][-1]) == numbers[0][-1]
        assert shown(product / 8**0.5, numbers[1][-1]) == numbers[1][-1]
        assert scaled == power
        assert shown(exp(power) / total, numbers[2][-1]) == numbers[2][-1]
        assert weight > 0


def test_softmax_arithmetic_with_a_bias(opened):
    found = opened("row=3&column=2&scheme=alibi")
    found.to("encoder")
    lines = found.page.locator('[data-cell="on"] p').all_inner_texts()
    product, scaled, (bias, score), (power, _, _) = (
        [float(x) for x in re.findall(r"-?\d+\.\d+", line.replace("−", "-"))] for line in lines
    )
    assert bias == -0.0625  # the slope of head 0 of two is 2^-4
    digits = [re.findall(r"-?\d+\.\d+", line.replace("−", "-"))[-1] for line in lines]
    assert score == power
    assert shown(scaled[-1] + bias, digits[2]) == digits[2]
    assert shown(product[-1] / 8**0.5, digits[1]) == digits[1]
    found.page.get_by_role("button", name="none", exact=True).first.click()
    assert "by 0 at most" in found.text("scheme")
    assert "choose an encoding" in found.text("repeated")


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
