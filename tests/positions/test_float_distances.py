"""Distances as floats: what exact fractions come to when they are rounded once."""

import copy
import pickle
from fractions import Fraction

import pytest
import torch

from posenc import FIRE, KERPLE, KERPLEWeight
from posenc.positions import Coordinates, checked_distances, float_distances, floats

FINE = Fraction(1, 2**62)


def drawn(steps: int, seed: int, count: int = 12) -> Coordinates:
    """Some whole steps and a rest each, of both signs, next to each other and far apart."""
    draw = torch.Generator().manual_seed(seed)
    whole = torch.randint(-steps, steps + 1, (count,), generator=draw)
    whole[1:5] = whole[0] + torch.tensor([0, 0, 1, -1])
    rest = torch.randint(2**62, (count,), generator=draw)
    rest[:5] = torch.tensor([5, 6, 0, 2**62 - 1, 2**62 - 1])
    return Coordinates([int(a) + int(b) * FINE for a, b in zip(whole, rest, strict=True)])


@pytest.mark.parametrize("count", [12, 50])  # pairs that are made first, and cut first
@pytest.mark.parametrize("steps", [2, 2**31 - 2, 2**31 - 1])
def test_distances_of_two_parts_are_rounded_once(steps, count):
    queries, keys = drawn(steps, 0, count), drawn(steps, 1, count)
    assert queries.rest is not None
    made = float_distances(queries, keys, torch.float64)
    want = [[float(q - k) for k in keys.tolist()] for q in queries.tolist()]
    assert made.tolist() == want


@pytest.mark.parametrize("steps", [2**40, 2**60])
def test_far_ones_are_within_one_more_rounding(steps):
    queries, keys = drawn(steps, 2), drawn(steps, 3)
    made = float_distances(queries, keys, torch.float64).tolist()
    for row, q in zip(made, queries.tolist(), strict=True):
        for value, k in zip(row, keys.tolist(), strict=True):
            assert abs(Fraction(value) - (q - k)) <= abs(q - k) * Fraction(1, 2**52)


@pytest.mark.parametrize("count", [12, 50])
@pytest.mark.parametrize("steps", [2, 2**31 - 2, 2**40, 2**61])
@pytest.mark.parametrize("scale", [1, Fraction(1, 30)])
def test_distances_of_two_parts_in_float32_are_as_good_as_rounded_once(scale, steps, count):
    queries, keys = drawn(steps, 8, count) * scale, drawn(steps, 9, count) * scale
    keys = Coordinates.cat([keys, queries[:3]])  # some of them 0 apart, and some by the least
    for k in (keys, queries):
        made = float_distances(queries, k, torch.float32).tolist()
        for row, q in zip(made, queries.tolist(), strict=True):
            for value, key in zip(row, k.tolist(), strict=True):
                want = torch.tensor(float(q - key), dtype=torch.float32)
                unit = Fraction(float(want.abs().nextafter(torch.tensor(torch.inf)) - want.abs()))
                assert abs(Fraction(value) - (q - key)) <= unit * Fraction(5000001, 10**7)


@pytest.mark.parametrize("least", [1e-5, -1e-5])  # -1 step and a rest that float64 does not hold
@pytest.mark.parametrize("count", [12, 50])
@pytest.mark.parametrize("mean", [600.0, 2.0**50])
def test_distances_of_floats_are_rounded_once(mean, count, least):
    """And those of what is made of them: of floats still, and where a sum is none any more."""
    draw = torch.Generator().manual_seed(12)
    floats = torch.rand(count, dtype=torch.float64, generator=draw).log() * mean
    floats[:3] = torch.tensor([least, 0.0, -2 * least], dtype=torch.float64)
    floats[3] = floats[4].nextafter(floats[5])
    ours, others = Coordinates(floats), Coordinates(floats.numpy()[::-1].copy())
    assert ours.rest is not None
    split = Coordinates.stack([ours, others], dim=-1)[:, 1] * 3 / 3
    for one, other in (
        *((ours, ours), (ours, others), (-ours, others), (ours[:1], split)),
        *((ours, Coordinates.cat([others, -others])), (ours, Coordinates.cat([ours, ours + FINE]))),
        *((ours + FINE, others), (ours + 1, ours + 1), (ours, Coordinates([0, 1, 2]))),
    ):
        want = [[float(q - k) for k in other.tolist()] for q in one.tolist()]
        want = torch.tensor(want, dtype=torch.float64)
        floats_still = None not in (one._seen.doubles, other._seen.doubles)
        made, once_more = float_distances(one, other, torch.float64), 2.0**-52
        # Sums of 2^32 steps and more are within one more rounding.
        off = 0.0 if mean == 600 or floats_still else once_more
        torch.testing.assert_close(made, want, rtol=off, atol=0)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1, 30), Fraction(5, 7)])
@pytest.mark.parametrize("reach", [2**14, 2**52, 2**52 + 1, 2**62 - 1])
def test_distances_of_one_part_are_whole_ones_times_the_scale(reach, scale):
    draw = torch.Generator().manual_seed(10)
    steps = torch.randint(-reach, reach + 1, (2, 9), generator=draw)
    steps[:, 0], steps[:, 1] = reach, -reach
    for q, k in ((steps, steps), (steps[:1], steps), (steps[0], steps[1])):
        one, other = Coordinates(q, scale=scale), Coordinates(k, scale=scale)
        want = Coordinates(checked_distances(q, k), scale=scale)
        for dtype in (torch.float64, torch.float32):
            assert torch.equal(float_distances(one, other, dtype), want.floats(dtype))


@pytest.mark.parametrize("scale", [1, Fraction(5, 7)])
@pytest.mark.parametrize("steps", [2**20, 2**40])
def test_many_pairs_are_those_of_each_row(steps, scale):
    """Made in blocks of rows, some of a batch together."""
    many = drawn(steps, 11, 600) * scale
    rows = [many[i : i + 1] for i in (0, 218, 219, 437, 599)]
    for dtype in (torch.float64, torch.bfloat16):
        made = float_distances(many, many, dtype)
        for row in rows:
            place = [r == row.tolist()[0] for r in many.tolist()].index(True)
            torch.testing.assert_close(
                made[place], float_distances(row, many, dtype)[0], rtol=0, atol=0
            )
    table = Coordinates.stack([many[:300], many[300:]])
    apart = torch.stack(
        [float_distances(each, many, torch.float64) for each in (table[0], table[1])]
    )
    assert torch.equal(float_distances(table, many, torch.float64), apart)


def test_of_one_set_with_itself_none_is_lost():
    """0 on the diagonal, opposites across it, and the least difference of all."""
    one = drawn(2**20, 4)
    made = float_distances(one, one, torch.float64)
    assert torch.equal(made, -made.mT)
    assert made[1, 0] == float(FINE)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2**70), Fraction(3, 4)])
def test_any_scale_is_that_of_exact_distances(scale):
    queries, keys = drawn(5, 5) * scale, drawn(5, 6) * scale
    made = float_distances(queries, keys, torch.float32)
    torch.testing.assert_close(
        made, checked_distances(queries, keys, reals=True).floats(torch.float32), rtol=1e-7, atol=0
    )


def test_one_axis_has_distances():
    """Along a last axis with a scale an entry, which is none of tokens, there are none."""
    points = Coordinates([1, 2]) * Fraction(1, 2)
    apart = Coordinates.stack([points[0], points[1] / 3], dim=-1)
    for positions in ((apart, apart), (apart, torch.arange(2))):
        with pytest.raises(ValueError, match="2 scales, one an axis"):
            float_distances(*positions, torch.float64)
        with pytest.raises(ValueError, match="2 scales, one an axis"):
            checked_distances(*positions, reals=True)
    for differences in (apart.differences, apart.float_differences):
        with pytest.raises(ValueError, match="one scale"):
            differences(apart)


def test_differences_too_long_for_two_parts_are_refused():
    far = Coordinates([2**61 + FINE, -(2**61) + FINE])
    with pytest.raises(ValueError, match="125 bits"):
        float_distances(far + far, far + far, torch.float64)


def test_what_was_seen_of_numbers_holds_for_what_is_made_of_them():
    """The farthest two, and what is next to 0 from below, after each change that keeps it."""
    most = 2**62 - FINE
    ends = Coordinates([most, -most])
    assert ends.rest is not None
    for one in (ends, -ends, ends[:], Coordinates(ends), Coordinates.cat([ends, -ends])):
        exact = one.tolist()
        want = [[float(q - k) for k in exact] for q in exact]
        assert float_distances(one, one, torch.float64).tolist() == want
    with pytest.raises(ValueError, match="125 bits"):
        float_distances(ends + (ends + 1), -ends - (ends + 1), torch.float32)

    small = [[1e-10, -3600.1], [0.1, -0.3], [-1e-10, -0.001]]
    made = Coordinates(torch.tensor(small, dtype=torch.float64))
    y, x = made.unbind(-1)
    opposite = [[-n for n in row] for row in small]
    assert (made[:2].floats().tolist(), (-made[:2]).floats().tolist()) == (small[:2], opposite[:2])
    assert (-made).floats().tolist() == opposite
    assert (made * 2 - made).floats().tolist() == small
    for of_y in (y, y * -1 * -1):
        assert Coordinates.stack([of_y, x], dim=-1).floats().tolist() == small
    made.floats().zero_()  # of the caller
    assert made.expand(2, 3, 2)[1].unsqueeze(0)[0, :, 1].floats().tolist() == x.floats().tolist()


def written(coordinates, way):
    """Counts that are one more, in place or in another tensor."""
    if way == "other":
        coordinates.values = coordinates.values + 1
    elif way == "rest":
        coordinates.values, coordinates.rest = coordinates.values + 1, coordinates.rest.clone()
    else:
        coordinates.values.add_(1)
    return coordinates


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("way", ["in place", "other", "rest", "base", "copied", "pickled"])
def test_what_was_seen_holds_until_somebody_writes(way, inference):
    floats = torch.tensor([-1e-3, 3600.1, 7.0], dtype=torch.float64)
    with torch.inference_mode(inference):
        coordinates = Coordinates(floats)
        assert coordinates._seen.doubles is not None
        below = coordinates[:2]
        written(coordinates, way)
        if way in ("base", "in place"):
            assert below.tolist() == coordinates.tolist()[:2]
            coordinates = below
        elif way == "copied":
            coordinates = copy.deepcopy(coordinates)
        elif way == "pickled":
            coordinates = pickle.loads(pickle.dumps(coordinates))
        exact = coordinates.tolist()
        assert coordinates.floats().tolist() == [float(n) for n in exact]
        want = [[float(q - k) for k in exact] for q in exact]
        assert coordinates.float_differences(coordinates).tolist() == want


def test_many_numbers_become_the_floats_that_few_do():
    """Cut into pieces that stay in cache, whatever the strides."""
    long = drawn(1000, 7, 180).unsqueeze(-1)
    floats = Coordinates(torch.linspace(-1e-3, 1e9, 36_000, dtype=torch.float64).view(18_000, 2).mT)
    assert floats.rest is not None
    table = (long.expand(180, 100), Coordinates(torch.arange(36_000).view(2, 18_000)) / 4, floats)
    for coordinates in table:
        each = torch.stack([coordinates[i].floats(torch.float32) for i in range(len(coordinates))])
        assert torch.equal(coordinates.floats(torch.float32), each)


def test_a_float_does_not_depend_on_its_neighbors():
    """Of either sign, next to 0, and where float64 holds no whole step more."""
    steps = torch.tensor([0, -1, -1, 5, -7, 2**53 + 2, -(2**53) - 2, -(2**53) - 1])
    rests = torch.tensor([1, 2**62 - 1, 3, 2**61 + 1, 2**61 - 1, 0, 0, 2**61])
    exact = [int(n) + int(r) * FINE for n, r in zip(steps, rests, strict=True)]
    together, below = Coordinates(exact), [1.0 if n < 0 else 0.0 for n in exact]
    for i, number in enumerate(exact):
        alone = Coordinates([number, *exact[i : i + 1], 1 + FINE])[:1].floats()
        assert torch.equal(together[i : i + 1].floats(), alone)
        assert abs(Fraction(alone.item()) - number) <= abs(number) * Fraction(1, 2**53) * 3 / 2
    assert torch.equal(together.floats().signbit().double(), torch.tensor(below).double())
    apart = torch.cat([together[i : i + 1].floats() for i in range(len(exact))])
    assert torch.equal(together.floats(), apart)


@pytest.mark.parametrize("by", [(1, -2), (0, 0), (Fraction(1, 3), Fraction(-5, 7)), (2**40, FINE)])
def test_each_axis_is_moved_by_a_number(by):
    points = [Coordinates([[0.5, 2.0], [-3.25, 7.0]]), drawn(4, 8).unsqueeze(-1).expand(12, 2)]
    points.append(Coordinates.stack([points[0][..., 0] / 3, points[0][..., 1]], dim=-1))
    points.append(Coordinates.stack([drawn(4, 8), drawn(5, 9) / 7], dim=-1))
    for each in points:
        want = [[n + number for n, number in zip(row, by, strict=True)] for row in each.tolist()]
        assert each.shifted(by).tolist() == want


def test_as_many_numbers_as_axes_move_points():
    with pytest.raises(ValueError, match=r"3 numbers are to be added .* of shape \(1, 2\)"):
        Coordinates([[0.5, 2.0]]).shifted([1, 2, 3])
    far = Coordinates([[2**62, 0]])
    assert far.shifted([2**62, 1]).tolist() == [[2**63, 1]]
    least = Fraction(1, 2**70)
    assert Coordinates([[0, 0]]).shifted([least, 1]).tolist() == [[least, 1]]
    assert Coordinates(torch.zeros(3, 0, dtype=torch.int64)).shifted([]).shape == (3, 0)


def test_numbers_are_compared_and_added_as_fractions_are():
    for coordinates in (drawn(4, 8), Coordinates([0.5, 1.0, -1.5, 2.0]), Coordinates([1, 2])):
        exact = coordinates.tolist()
        for number in (1, Fraction(1, 2), Fraction(1, 3), -2, FINE, Fraction(3, 2**60), 2**40):
            assert (coordinates < number).tolist() == [n < number for n in exact]
            assert (coordinates <= number).tolist() == [n <= number for n in exact]
            assert (coordinates > number).tolist() == [n > number for n in exact]
            assert (coordinates >= number).tolist() == [n >= number for n in exact]
            assert (coordinates == number).tolist() == [n == number for n in exact]
            if number in (1, -2, Fraction(1, 2), FINE):
                assert (coordinates + number).tolist() == [n + number for n in exact]
                assert (coordinates - number).tolist() == [n - number for n in exact]


@pytest.mark.parametrize("far", [[70_000], Coordinates([70_000.5])], ids=["whole", "real"])
def test_what_float16_makes_infinite_is_refused(far):
    for made in (lambda: float_distances(far, [0], torch.float16), lambda: floats(
        far if isinstance(far, Coordinates) else torch.tensor(far), torch.float16
    )):  # fmt: skip
        with pytest.raises(ValueError, match="beyond 65504, the largest number of float16"):
            made()
    assert float_distances(far, [60_000], torch.float16).isfinite().all()


@pytest.mark.parametrize("bias", [FIRE(2), KERPLE(2), KERPLEWeight(2)], ids=repr)
def test_biases_of_far_keys_are_no_infinity_in_float16(bias):
    with pytest.raises(ValueError, match="Ask for float32, and cast"):
        bias.table([100_000], [0], dtype=torch.float16)
    assert bias.table([100_000], [0]).half().isfinite().all()
