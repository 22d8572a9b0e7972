"""The page's mathematics against the library and against what others have written: 1e-12."""

import json

import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.numerics.buckets import t5_buckets

CLOSE = {"rtol": 0.0, "atol": 1e-12}
WIDTHS = {
    "paper": [(128, 1e4), (1024, 1e7), (127, 1e4), (4, 1.0)],
    "concatenated": [(128, 1e4), (1024, 1e7)],
    "tensor2tensor": [(128, 1e4), (127, 1e4), (4, 100.0)],
    "timestep": [(128, 1e4), (9, 100.0)],
    "per_dimension_one_based": [(14, 1e4), (127, 1e4), (1024, 1e7)],
    "per_dimension": [(128, 1e4), (127, 1e4)],
    "double_exponent": [(128, 1e4), (127, 1e4)],
}


def double(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def table(convention: str, dim: int, base: float, positions) -> torch.Tensor:
    encoding = Sinusoidal(dim, base, convention)
    return encoding.table(torch.as_tensor(positions), dtype=torch.float64)


@pytest.mark.parametrize("convention", WIDTHS)
def test_tables_at_defaults_limits_odd_widths_and_base_one(javascript, convention):
    first = CONVENTIONS[convention].first
    asked, expected = [], []
    for dim, base in WIDTHS[convention]:
        for start, count in ((0, 3), (10, 1), (63, 70), (4090, 6)):
            asked.append(
                f"sincos.block(conventions.channels('{convention}', {dim}), {base}, "
                f"{start + first}, {count})"
            )
            expected.append(table(convention, dim, base, range(start, start + count)))
    for found, wanted in zip(javascript(asked), expected, strict=True):
        torch.testing.assert_close(double(found).view_as(wanted), wanted, **CLOSE)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions_are_those_of_the_library(javascript, name):
    convention, dims = CONVENTIONS[name], range(1, 10)
    channels, values, pairing, *refusals = javascript(
        [
            f"conventions.channels('{name}', 14)",
            f"conventions.channels('{name}', 14).map("
            f"(c) => sincos.value(c, 1e4, 4095 + {convention.first}))",
            f"conventions.pairing('{name}', 14)",
            *(f"conventions.refusal('{name}', {dim})" for dim in dims),
        ]
    )
    for j, channel in enumerate(channels):
        fact = convention.channel(j, 14)
        assert channel["kind"] == fact.function
        assert channel["top"] / channel["bottom"] == pytest.approx(float(fact.exponent), rel=1e-15)
    torch.testing.assert_close(double(values), table(name, 14, 1e4, [4095])[0], **CLOSE)
    keeps = Sinusoidal(14, convention=name).keeps_shift
    assert (len(pairing["pairs"]), len(pairing["single"])) == ((7, 0) if keeps else (0, 14))
    for dim, words in zip(dims, refusals, strict=True):
        try:
            Sinusoidal(dim, convention=name)
        except ValueError:
            assert words
        else:
            assert words == ""


def test_bfloat16_rounds_once_to_nearest_even(javascript):
    values = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = javascript([f"{json.dumps(values.tolist())}.map(rounding.toBfloat16)"])[0]
    assert found == values.to(torch.bfloat16).double().tolist()
    # Ties go to the even side; a hair above a tie goes up, though float32 would lose the hair.
    ties = javascript(["[257, 259, -257, 1 + 2**-8 + 2**-40, 0].map(rounding.toBfloat16)"])[0]
    assert ties == [256, 260, -256, 1 + 2**-7, 0]
    distinct = len(torch.arange(4096).to(torch.bfloat16).unique())
    assert javascript(["rounding.distinctInBfloat16(4096)"]) == [distinct]


@pytest.mark.parametrize(
    ("convention", "dim", "base", "length"),
    [("paper", 32, 50.0, 150), ("paper", 15, 50.0, 150), ("per_dimension", 14, 50.0, 150),
     # Many are nearly as near.
     ("per_dimension_one_based", 5, 1.0, 700), ("double_exponent", 2, 1e7, 700)],
)  # fmt: skip
def test_dot_products_and_the_closest_pair(javascript, convention, dim, base, length):
    first = CONVENTIONS[convention].first
    gram = (
        f"similarity.gram(conventions.channels('{convention}', {dim}), {base}, {first}, {length})"
    )
    rows = f"Array.from({{length: {length}}}, (_, p) => p)"
    asked = f"convention: '{convention}', dim: {dim}, base: {base}, length: {length}"
    found, closest, largest = javascript(
        [
            f"((g) => {rows}.map((p) => {rows}.map((q) => similarity.product(g, p, q))))({gram})",
            f"similarity.closest({gram}, {length}, () => state_facts.rowsOf({{ {asked} }}))",
            f"similarity.largestProduct({gram}, {length})",
        ]
    )
    expected = table(convention, dim, base, range(length))
    torch.testing.assert_close(double(found), expected @ expected.T, rtol=0, atol=5e-12)
    assert largest == pytest.approx((expected @ expected.T).abs().max().item(), abs=1e-11)
    named = (expected[closest["first"]] - expected[closest["second"]]).norm().item()
    assert named == pytest.approx(torch.pdist(expected).min().item(), rel=1e-6)


def test_the_shift_matrix_moves_the_librarys_table(javascript):
    before, after = table("paper", 8, 1e4, [10])[0], table("paper", 8, 1e4, [10 - 37])[0]
    for i, omega in enumerate(Geometric(8).radians()):
        pair = before[2 * i : 2 * i + 2].tolist()
        moved = javascript([f"shift.turn(shift.rotation({float(omega)!r}, -37), {pair})"])[0]
        torch.testing.assert_close(double(moved), after[2 * i : 2 * i + 2], **CLOSE)
    assert javascript(["shift.largestError([1, 0.1, 0.01], 10, 4000)"])[0] < 2e-12


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotary(javascript, pairing):
    x = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    rotary = Rotary(8, pairing=pairing)
    for position in (0, 17, -5, 4095):
        given = f"{x.tolist()}, {position}, scaling.geometric(8, 10000), '{pairing}'"
        found = javascript([f"rotary.rotate({given})"])[0]
        placed = rotary.table(torch.tensor([position]), dtype=torch.float64)
        expected = rotary.encode_queries(x.view(1, 1, 1, 8), placed).flatten()
        torch.testing.assert_close(double(found), expected, **CLOSE)


@pytest.mark.parametrize("heads", [1, 3, 8, 12, 32])
def test_alibi(javascript, heads):
    distances = [-160, -3, 0, 5, 4095]
    asked = f"alibi.slopes({heads}).map((m) => {distances}.map((d) => alibi.bias(m, d)))"
    expected = ALiBi(heads).profile(torch.tensor(distances), dtype=torch.float64)
    torch.testing.assert_close(double(javascript([asked])[0]), expected, **CLOSE)


@pytest.mark.parametrize(
    ("count", "furthest", "bidirectional"), [(32, 128, True), (32, 128, False), (36, 50, False)]
)
def test_t5_buckets(javascript, count, furthest, bidirectional):
    """36 causal buckets to 50: the 27th begins at 30, which float32 logarithms miss."""
    distances = torch.arange(-300, 301)
    options = json.dumps({"buckets": count, "furthest": furthest, "bidirectional": bidirectional})
    found = javascript([f"{distances.tolist()}.map((d) => t5.bucket(d, {options}))"])[0]
    library = t5_buckets(distances, count, furthest, bidirectional=bidirectional)
    assert found == library.tolist()
    if count == 32:  # transformers counts key − query; the page, as the library, query − key
        of = T5Attention._relative_position_bucket
        assert found == of(-distances, bidirectional, count, furthest).tolist()


@pytest.mark.parametrize(("dim", "base", "trained"), [(128, 1e4, 2048), (64, 5e5, 8192)])
@pytest.mark.parametrize("factor", [1.0, 4.0, 40.0])
def test_scaled_schedules(javascript, dim, base, trained, factor):
    plain = Geometric(dim, base)
    expected = {
        f"scaling.geometric({dim}, {base})": plain,
        f"scaling.linear({dim}, {base}, {factor})": Linear(plain, factor),
        f"scaling.ntk({dim}, {base}, {factor})": NTK(plain, factor),
        f"scaling.yarn({dim}, {base}, {factor}, {trained})": YaRN(plain, factor, trained),
        f"scaling.llama3({dim}, {base}, {factor}, {trained})": Llama3(
            plain, factor, trained_length=trained
        ),
    }
    for found, schedule in zip(javascript(list(expected)), expected.values(), strict=True):
        wanted = [float(omega) for omega in schedule.radians()]
        assert found == pytest.approx(wanted, rel=1e-12)
    attention = javascript([f"scaling.yarnAttention({factor})"])[0]
    assert attention == pytest.approx(YaRN(plain, factor, trained).attention_factor, rel=1e-14)
