"""The battery must fail what is wrong: each broken encoding here is caught by the check named."""

import math

import pytest
import torch

from posenc import (
    CABLE,
    ALiBi,
    CoPE,
    DAPEv2,
    Learned,
    Positional,
    Rotary,
    ScoreBias,
    Shaw,
    Sinusoidal,
    Temperature,
    TokenEncoding,
)
from posenc.positions import consecutive
from posenc.testing import Case, battery
from posenc.transformer import Encoder, KeyValueCache


class Tutorial(TokenEncoding):
    """The common module: a float32 buffer of fixed length, sliced to the sequence."""

    batch_first, keeps_norm, keeps_shift = True, True, True

    def __init__(self, dim: int, max_len: int = 64):
        super().__init__()
        self.dim = dim
        steps = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
        table = torch.stack([torch.sin(steps * div), torch.cos(steps * div)], -1).flatten(-2)
        self.register_buffer("pe", table)

    def table(self, positions, *, dtype=None):
        return self.pe[positions].to(dtype or torch.float32)

    def encode(self, x, table):
        return x + table


class BatchAxis(Sinusoidal):
    """Encodes the batch axis instead of the sequence."""

    def encode(self, x, table):
        return x + self.table(consecutive(len(x))).unsqueeze(1)


class FloatPositions(Sinusoidal):
    """Holds positions in bfloat16, where 256 and 257 are one number."""

    def table(self, positions, *, dtype=None):
        return super().table(positions.to(torch.bfloat16).long(), dtype=dtype)


class RemembersLength(Sinusoidal):
    """Keeps the first table it made, whatever is asked for later."""

    def table(self, positions, *, dtype=None):
        if not hasattr(self, "kept"):
            self.kept = super().table(positions, dtype=dtype)
        return self.kept[: positions.shape[-1]]


class DividedByLength(Sinusoidal):
    """Positions divided by the length: another length, another code for the same token."""

    def table(self, positions, *, dtype=None):
        return super().table(positions * 1000 // max(1, positions.shape[-1]), dtype=dtype)


class IgnoresBase(Sinusoidal):
    """Takes a base and forgets it."""

    def __init__(self, dim, base=10_000.0):
        super().__init__(dim)


class Broadcasts(Sinusoidal):
    """Adds one row to all tokens where it is given one."""

    def encode(self, x, table):
        return (x + table).to(x.dtype)


class GivesItsTable(Sinusoidal):
    """What comes back is a view of the table."""

    def encode(self, x, table):
        return table.to(x.dtype).expand_as(x)


class WritesInPlace(Sinusoidal):
    """Adds into the caller's embeddings."""

    def encode(self, x, table):
        return x.add_(table.to(x.dtype))


class ClaimsTooMuch(Learned):
    """A learned table has no shift map."""

    keeps_shift = True


class ClaimsTooLittle(Sinusoidal):
    """Denies what a paired encoding keeps."""

    def __init__(self, dim):
        super().__init__(dim)
        self.keeps_norm = False


class Detached(Learned):
    """Cuts the gradient of the table off."""

    def table(self, positions, *, dtype=None):
        return super().table(positions, dtype=dtype).detach()


class ForgetsRows(Rotary):
    """Reads rows 0, 1, 2, … whichever are asked for."""

    encode_queries, encode_keys = Rotary.encode_queries, Rotary.encode_keys

    def encode_both(self, q, k, table, positions=None, **out):
        return super().encode_both(q, k, table[: q.shape[-2]], **out)


class RefusesItsBase(Sinusoidal):
    """Takes any base and works with none but the usual."""

    def __init__(self, dim, base=10_000.0):
        super().__init__(dim, base)

    def encode(self, x, table):
        if self.base != 10_000.0:
            raise ValueError("no such base")
        return super().encode(x, table)


class SaysNothingOfItsBase(Sinusoidal):
    """Takes a base, and refuses it with the same words as all else that is wrong."""

    def __init__(self, dim, base=10_000.0):
        super().__init__(dim)
        if base != 10_000.0:
            raise ValueError("wrong")


class CutsAPart(Learned):
    """One of its two parameters never gets a gradient."""

    def __init__(self, dim, max_len):
        super().__init__(dim, max_len)
        self.shift = torch.nn.Parameter(torch.ones(dim))

    def table(self, positions, *, dtype=None):
        return super().table(positions, dtype=dtype) + self.shift.detach()


class CutsTheContent(Temperature):
    """Scores lose their history on the way."""

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        return super().encode(scores.detach(), table) + 0 * q.sum()


class CutsKeys(Shaw):
    """Adds a product with keys through which no gradient flows."""

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        seen = super().encode(scores, table, q=q, k=k, scale=scale)
        return seen + k.detach().sum(-1).mean(-2, keepdim=True).unsqueeze(-2)


class LearnsInAutocast(Learned):
    """A learned table that autocast rounds."""

    def table(self, positions, *, dtype=None):
        rows = super().table(positions, dtype=dtype)
        return torch.nn.functional.linear(rows, torch.eye(self.dim))


class TakesTheDefault(Sinusoidal):
    """Adds a product of a bool and a number, which torch rounds to its default dtype."""

    def table(self, positions, *, dtype=None):
        return super().table(positions, dtype=dtype) + (positions > 2).unsqueeze(-1) * 0.3


class CastWithItsModule(Learned):
    """Gives the dtype of its parameters, whatever is asked for."""

    def table(self, positions, *, dtype=None):
        return super().table(positions)


class AddsFarFromZero(Learned):
    """Adds in the dtype of content, beside a number that leaves few digits to it."""

    def encode(self, x, table):
        return (x + 100) + (table.to(x.dtype) - 100)


class RoundsInside(Learned):
    """Computes in 8 bits where its parameters have 16."""

    def table(self, positions, *, dtype=None):
        rows = super().table(positions, dtype=dtype)
        if self.weight.dtype in (torch.float16, torch.bfloat16):
            rows = rows.to(torch.float8_e4m3fn).to(rows.dtype)
        return rows


class MadeOnTheCpu(Learned):
    """Takes a device and a dtype, and makes its parameters as it likes."""

    def __init__(self, dim, max_len, *, device=None, dtype=None):
        super().__init__(dim, max_len)


class HasNoFactory(TokenEncoding):
    """Learns one number, which has no axis."""

    batch_first, keeps_norm, keeps_shift = True, True, True

    def __init__(self, dim):
        super().__init__()
        self.dim, self.height = dim, torch.nn.Parameter(torch.tensor(1.0))

    def table(self, positions, *, dtype=None):
        return self.height * positions.unsqueeze(-1).expand(*positions.shape, self.dim)

    def encode(self, x, table):
        return x + table


class ClaimsPairs(CoPE):
    """It counts the tokens between, and denies it."""

    is_pairwise = True


class DeniesPairs(ALiBi):
    """A bias of each pair by itself, which claims more."""

    is_pairwise = False


class LooksAtTheLength(Temperature):
    """Of each pair, and it changes with the number of keys."""

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        return super().encode(scores, table) / scores.shape[-1]


class ReadsNeighborsInSilence(DAPEv2):
    """Reads the keys beside each key, and does not say so."""

    reads_neighbors = False


class ClaimsNeighbors(ALiBi):
    """Looks at one key alone, and says that it looks at those beside."""

    reads_neighbors = True


class DividesByItsRow(Temperature):
    """Divides scores by their root mean square over all keys, those after the query too."""

    is_relative, is_pairwise = True, False

    def __init__(self, heads, reads_later=False):
        super().__init__(heads)
        self.reads_later = reads_later

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        size = (scores.double().square().mean(-1, keepdim=True) + 1).sqrt()
        return super().encode((scores / size).to(scores.dtype), table)


class ClaimsLaterKeys(ALiBi):
    """Looks at one key alone, and says that it looks at later ones."""

    reads_later = True


class ReadsTheTokenBefore(CABLE):
    """What it reads of a key holds the hidden state of the token before, which is kept nowhere."""

    def key_features(self, hidden):
        return super().key_features(hidden + hidden.roll(1, -2))


class ChangesOutputInSilence(ALiBi):
    """Changes what attention gives, and says nothing of it."""

    def encode_output(self, out, weights, table):
        return 2 * out


class ClaimsOutput(Rotary):
    """Says that it changes what attention gives."""

    changes_output = True


class HidesInAList(Sinusoidal):
    """Keeps a tensor where a cast does not find it."""

    def __init__(self, dim):
        super().__init__(dim)
        self.kept = [torch.zeros(3)]


class HidesInADictionary(Sinusoidal):
    """The same, under a name and deeper down."""

    def __init__(self, dim):
        super().__init__(dim)
        self.kept = {"rows": (torch.zeros(3),)}


class Absolute(ScoreBias):
    """A bias of where the query stands, which says what it is told of itself."""

    def __init__(self, heads, is_relative):
        super().__init__()
        self.heads, self.is_relative = heads, is_relative

    def table(self, q_positions, k_positions, *, dtype=None):
        there = q_positions.double().sin().unsqueeze(-1) + 0 * k_positions.unsqueeze(-2)
        return there.to(dtype or torch.float32).unsqueeze(-3).expand(self.heads, *there.shape)


class BreaksTheGraph(Sinusoidal):
    """Looks at a value, which a graph cannot."""

    def encode(self, x, table):
        return super().encode(x, table) if x.abs().max().item() >= 0 else x


BROKEN = [
    (Tutorial, {"dim": 8}, {}, "owns_parameters_only"),
    (Tutorial, {"dim": 8}, {}, "casts"),
    (Tutorial, {"dim": 8}, {}, "arguments_matter"),
    (HidesInAList, {"dim": 8}, {}, "owns_parameters_only"),
    (HidesInADictionary, {"dim": 8}, {}, "owns_parameters_only"),
    (BatchAxis, {"dim": 8}, {}, "encodes_the_sequence"),
    (FloatPositions, {"dim": 8}, {}, "neighbors_stay_distinct"),
    (RemembersLength, {"dim": 8}, {}, "purity"),
    (RemembersLength, {"dim": 8}, {}, "prefill_equals_decoding"),
    (ForgetsRows, {"frequencies": 8}, {}, "kept_rows_serve"),
    (DividedByLength, {"dim": 8}, {}, "left_padded"),
    (DividedByLength, {"dim": 8}, {}, "packed"),
    (DividedByLength, {"dim": 8}, {}, "sharded"),
    (IgnoresBase, {"dim": 8}, {"base": 100.0}, "arguments_matter"),
    (RefusesItsBase, {"dim": 8}, {"base": 100.0}, "arguments_matter"),
    (SaysNothingOfItsBase, {"dim": 8}, {"base": 100.0}, "arguments_matter"),
    (MadeOnTheCpu, {"dim": 8, "max_len": 9}, {}, "parameters_are_made_as_asked"),
    (HasNoFactory, {"dim": 8}, {}, "parameters_are_made_as_asked"),
    (LearnsInAutocast, {"dim": 8, "max_len": 9}, {}, "autocast"),
    (TakesTheDefault, {"dim": 8}, {}, "default_dtype"),
    (CastWithItsModule, {"dim": 8, "max_len": 9}, {}, "casts"),
    (RoundsInside, {"dim": 8, "max_len": 9}, {}, "casts"),
    (AddsFarFromZero, {"dim": 8, "max_len": 9}, {}, "narrow_encodings"),
    (CutsAPart, {"dim": 8, "max_len": 9}, {}, "gradients_stay_finite"),
    (CutsTheContent, {"heads": 4}, {}, "gradients_stay_finite"),
    (CutsKeys, {"heads": 4, "head_dim": 8, "reach": 2}, {}, "gradients_stay_finite"),
    (ClaimsPairs, {"heads": 4, "head_dim": 8, "max_positions": 3, "std": 1.0}, {}, "claims"),
    (DeniesPairs, {"heads": 4}, {}, "claims"),
    (LooksAtTheLength, {"heads": 4}, {}, "claims"),
    (ReadsNeighborsInSilence, {"heads": 4, "bias": ALiBi(4)}, {}, "claims"),
    (ClaimsNeighbors, {"heads": 4}, {}, "claims"),
    (DividesByItsRow, {"heads": 4}, {}, "prefill_equals_decoding"),
    (DividesByItsRow, {"heads": 4}, {}, "claims"),
    (ClaimsLaterKeys, {"heads": 4}, {}, "claims"),
    (ReadsTheTokenBefore, {"heads": 4, "dim": 6}, {}, "prefill_equals_decoding"),
    (ReadsTheTokenBefore, {"heads": 4, "dim": 6}, {}, "sharded"),
    (ChangesOutputInSilence, {"heads": 4}, {}, "claims"),
    (ClaimsOutput, {"frequencies": 8}, {}, "claims"),
    (WritesInPlace, {"dim": 8}, {}, "content_is_left_alone"),
    (GivesItsTable, {"dim": 8}, {}, "content_is_left_alone"),
    (ClaimsTooMuch, {"dim": 8, "max_len": 99}, {}, "claims"),
    (ClaimsTooLittle, {"dim": 8}, {}, "claims"),
    (Detached, {"dim": 8, "max_len": 9}, {}, "gradients"),
    (BreaksTheGraph, {"dim": 8}, {}, "growing_lengths_do_not_recompile"),
    (BreaksTheGraph, {"dim": 8}, {}, "exports"),
]


@pytest.mark.parametrize(
    ("broken", "arguments", "changes", "name"),
    [pytest.param(*row, id=f"{row[0].__name__}-{row[3]}") for row in BROKEN],
)
def test_a_broken_encoding_is_caught(broken, arguments, changes, name):
    limit = arguments.get("max_len", 64 if broken is Tutorial else None)
    case = Case(broken, arguments, changes, limit=limit)
    (check,) = [check for check in battery(case) if check.name == name]
    with pytest.raises(Exception) as caught:  # noqa: PT011 (a graph break is torch's own error)
        check()
    assert isinstance(caught.value, AssertionError) or broken is BreaksTheGraph


def test_each_planted_fault_is_the_only_one():
    """What the faults above derive from passes the check that caught them."""
    sound = {Sinusoidal: {"dim": 8}, Learned: {"dim": 8, "max_len": 64}, ALiBi: {"heads": 4}}
    for build, arguments in sound.items():
        case = Case(build, arguments, limit=arguments.get("max_len"))
        for check in battery(case, compiling=False):
            if check.name != "arguments_matter":
                check()


def test_a_refusal_is_told_apart_from_no_effect():
    case = Case(RefusesItsBase, {"dim": 8}, {"base": 100.0})
    (check,) = [c for c in battery(case) if c.name == "arguments_matter"]
    with pytest.raises(AssertionError, match=r"base=100.0 is refused: no such base"):
        check()


def test_a_forgotten_argument_is_named():
    (check,) = [c for c in battery(Case(Sinusoidal, {"dim": 8})) if c.name == "arguments_matter"]
    with pytest.raises(AssertionError, match="no value for base, convention"):
        check()


def test_what_is_no_encoding_is_refused():
    with pytest.raises(TypeError, match="Linear is none of TokenEncoding, QueryKeyEncoding"):
        Case(torch.nn.Linear, {"in_features": 2, "out_features": 2}).subject()


def test_every_check_says_what_it_checks():
    checks = battery(Case(Sinusoidal, {"dim": 8}))
    assert all(check.function.__doc__ for check in checks)
    assert len({str(check) for check in checks}) == len(checks)


def _ask(name, case):
    (check,) = [check for check in battery(case, compiling=False) if check.name == name]
    return check()


def test_what_reads_later_keys_says_so_and_is_not_asked_to_decode():
    case = Case(DividesByItsRow, {"heads": 4, "reads_later": True}, bitwise=False)
    told = "it reads keys after the query (reads_later is True)"
    assert _ask("prefill_equals_decoding", case) == told
    assert _ask("sharded", case) is None
    causal = {"positional": Positional(scores=case.module()), "is_causal": True}
    x = torch.randn(1, 3, 16)
    with pytest.raises(ValueError, match="DividesByItsRow reads later"):
        Encoder(16, 4, 1, **causal).eval()(x, cache=KeyValueCache())


CHANGES = {"offset": 1, "std": 0.5, "dropout": 0.1, "batch_first": False}
LAST = {"neighbors_stay_distinct": (257, 263), "arguments_matter": (201, 212)}


@pytest.mark.parametrize(("name", "limits"), LAST.items(), ids=list(LAST))
def test_no_check_asks_past_the_last_position(name, limits):
    """A few positions past where a check looks are as many as it has, not as many as it asks."""
    for limit in limits:
        assert _ask(name, Case(Learned, {"dim": 8, "max_len": limit}, CHANGES, limit=limit)) is None


@pytest.mark.parametrize("limit", [2, 3, 8, 12])
def test_few_positions_are_no_fault(limit):
    case = Case(Learned, {"dim": 4, "max_len": limit}, CHANGES, limit=limit)
    for check in battery(case, compiling=False):
        check()
    assert _ask("kept_rows_serve", case) == "it encodes no queries and keys"
    assert "it has 1 positions and the check may need 13: positions" in _ask(
        "purity", Case(Learned, {"dim": 4, "max_len": 1}, limit=1)
    )


def test_thirteen_positions_are_enough_for_every_check():
    with pytest.raises(IndexError, match="has 9 rows"):
        _ask("rows_stand_alone", Case(Learned, {"dim": 4, "max_len": 9}, limit=13))


@pytest.mark.parametrize(("dim", "limit"), [(16, 16), (128, 40), (256, 77)])
def test_few_rows_are_no_counter_example_of_a_shift(dim, limit):
    """So few that half of them leave the map open, which then errs on the others."""
    told = _ask("claims", Case(Sinusoidal, {"dim": dim}, limit=limit))
    assert told == "too few positions to check keeps_shift"


def test_a_false_shift_is_found_among_few_rows():
    case = Case(ClaimsTooMuch, {"dim": 8, "max_len": 16}, limit=16)
    with pytest.raises(AssertionError, match="keeps_shift is True, but the search found a"):
        _ask("claims", case)


@pytest.mark.parametrize("limit", [13, 301, 5001])
def test_a_claim_is_asked_up_to_the_last_position(limit):
    assert _ask("claims", Case(Absolute, {"heads": 4, "is_relative": False}, limit=limit)) is None
    case = Case(Absolute, {"heads": 4, "is_relative": True}, limit=limit)
    with pytest.raises(AssertionError, match="is_relative is True, but the search found a"):
        _ask("claims", case)


def test_a_claim_of_shifts_is_not_asked_where_nothing_can_be_shifted():
    for claimed in (False, True):
        case = Case(Absolute, {"heads": 4, "is_relative": claimed}, limit=6)
        assert _ask("claims", case) == "too few positions to check is_relative"
