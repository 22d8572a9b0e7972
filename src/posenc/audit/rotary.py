"""Questions to something that rotates queries and keys."""

from math import log, pi

import torch
from torch import Tensor, nn

from posenc.audit.report import Fault, NotApplicableError
from posenc.audit.rotary_subject import RotarySubject
from posenc.encodings.queries_keys import Rotary
from posenc.frequencies import FromCheckpoint, Geometric, Schedule

FAR = (1_000, 10_000, 100_000, 1_000_000)


def encodes_the_sequence(subject: RotarySubject) -> Fault | None:
    """Equal tokens of one row differ by their place; equal rows of a batch do not."""
    made = subject.turned(torch.ones(3, 2, 6, subject.width))
    by_row, by_place = (made - made[:1]).abs().max().item(), made.diff(dim=2).abs().max().item()
    if by_row > 1e-6:
        return Fault(
            "encodes the batch axis",
            f"equal rows of a batch come out up to {by_row:.3g} apart: the batch axis is rotated",
            by_row,
        )
    if by_place == 0:
        return Fault("encodes nothing", "all positions of a row are turned alike", 0.0, 1.0)
    return None


def is_relative(subject: RotarySubject) -> Fault | None:
    """Products of a query and a key depend on the difference of their positions alone."""
    near = subject.matrix(3).mT @ subject.matrix(8)
    far = subject.matrix(103).mT @ subject.matrix(108)
    off = (near - far).abs().max().item()
    if off < 1e-3:
        return None
    kept = subject.matrix(5)
    bent = (kept.mT @ kept - torch.eye(subject.width)).abs().max().item()
    why = ""
    if bent > 1e-3:
        why = "the channels rotated together do not share an angle (wrong pairing), or "
    return Fault(
        "not relative",
        f"the product of a query at 3 and a key at 8 differs by up to {off:.3g} from that at 103 "
        f"and 108 (lengths change by {bent:.3g}): {why}positions enter as more than a rotation",
        off,
    )


def decodes_as_it_prefills(subject: RotarySubject) -> Fault | None:
    """One token behind a cache is turned as in the whole row."""
    if not subject.moves:
        raise NotApplicableError("the first position cannot be said")
    seq = 9
    x = torch.randn(1, 2, seq, subject.width)
    whole = subject.turned(x)
    steps = torch.cat([subject.turned(x[:, :, p : p + 1], p) for p in range(seq)], dim=2)
    far = (steps - whole).abs().max().item()
    if far < 1e-5:
        return None
    later = torch.cat([subject.turned(x[:, :, p : p + 1], p + 1) for p in range(seq)], dim=2)
    by_one = (later - whole).abs().max().item()
    why = " It is off by one: token p is turned as p − 1." if by_one < 1e-5 else ""
    return Fault(
        "decoding differs from prefill",
        f"tokens turned one by one are up to {far:.3g} away from the same tokens turned "
        f"together.{why}",
        far,
    )


def shares_no_state(subject: RotarySubject) -> Fault | None:
    """A call leaves no trace in the next."""
    x = torch.randn(1, 2, 7, subject.width)
    fresh, used = subject.turned(x), subject.make()
    for dtype, seq in ((torch.bfloat16, 7), (torch.float64, 20), (torch.bfloat16, 7)):
        try:
            subject.turned(torch.randn(1, 2, seq, subject.width, dtype=dtype), by=used)
        except Exception:
            continue
    again = subject.turned(x, by=used)
    far = (again.double() - fresh.double()).abs().max().item()
    if far == 0 and again.dtype == fresh.dtype:
        return None
    return Fault(
        "shares state between calls",
        f"after calls in bfloat16 and float64 a float32 call is up to {far:.3g} away from a fresh "
        f"one: something is cached by less than all that shapes it",
        far,
    )


def survives_a_cast(subject: RotarySubject) -> Fault | None:
    """``.bfloat16()`` and back leaves the angles as they were."""
    module = subject.make()
    if not isinstance(module, nn.Module):
        raise NotApplicableError("it is no module")
    try:
        cast = module.bfloat16().float()
        far = (subject.matrix(1_000, cast) - subject.matrix(1_000)).abs().max().item()
    except Exception as error:
        raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    if far < 1e-6:
        return None
    return Fault(
        "breaks when cast",
        f"after .bfloat16() and back, a token at 1,000 is turned by a matrix up to {far:.3g} away: "
        f"frequencies are rounded with the weights",
        far,
    )


def keeps_positions_apart(subject: RotarySubject) -> Fault | None:
    """bfloat16 queries are turned as float32 ones are, up to their own rounding."""
    if not subject.moves:
        start, seq = 0, 1_024
    else:
        start, seq = 1_000, 24
    x = torch.randn(1, 1, seq, subject.width).bfloat16()
    try:
        narrow = subject.turned(x, start).double()
    except Exception as error:
        raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    wide = subject.turned(x.float(), start).double()
    lengths = wide.norm(dim=-1, keepdim=True)
    far = ((narrow - wide) / lengths).abs().max().item()
    if far < 0.05:
        return None
    ones = subject.turned(torch.ones(1, 1, seq, subject.width).bfloat16(), start)[0, 0]
    distinct = len(ones.unique(dim=0))
    return Fault(
        "loses positions in bfloat16",
        f"bfloat16 queries at {start} to {start + seq - 1} come out up to {far:.2g} of their "
        f"length away from float32 ones, and {seq} positions turn one query in {distinct} ways: "
        f"positions or angles are held in bfloat16, where 256 and 257 are one number",
        far,
    )


def frequencies_of(subject: RotarySubject) -> tuple[list[int], Tensor]:
    """The partner of each turning pair's first channel, and its angle at position 1."""
    turn = subject.matrix(1)
    sines = (turn - torch.diag(turn.diagonal())).abs()
    firsts, angles, partners = [], [], []
    for channel in range(subject.width):
        partner = int(sines[:, channel].argmax())
        if sines[partner, channel] > 1e-12 and partner > channel:
            firsts.append(channel)
            partners.append(partner)
            angles.append(torch.atan2(turn[partner, channel], turn[channel, channel]).abs().item())
    return partners, torch.tensor(angles, dtype=torch.float64)


def schedule_of(subject: RotarySubject) -> tuple[Schedule, float] | None:
    """The geometric schedule that it turns with, and its base, if it is one."""
    _, angles = frequencies_of(subject)
    if len(angles) < 2 or abs(angles[0] - 1) > 1e-3 or angles[1] <= 0:
        return None
    width = 2 * len(angles)
    base = float(angles[1] ** (-width / 2))
    close = next((b for b in KNOWN_BASES if abs(log(base) / log(b) - 1) < 2e-3), base)
    wanted = Geometric(width, close)
    ours = torch.tensor([2 * pi / w for w in wanted.wavelengths()], dtype=torch.float64)
    return (wanted, close) if ((ours - angles).abs() < 1e-4 * ours + 1e-6).all() else None


KNOWN_BASES = (
    100.0, 10_000.0, 100_000_000.0, 160_000.0, 500_000.0, 1_000_000.0, 150_000.0, 5_000_000.0
)  # fmt: skip


def has_the_usual_exponent(subject: RotarySubject) -> Fault | None:
    """Frequencies are base^(−2i/width) with a base that somebody uses."""
    found = schedule_of(subject)
    if found is None:
        raise NotApplicableError("its frequencies are no plain geometric series (scaled, 2-D?)")
    base = found[1]
    if base not in (100.0, 100_000_000.0):
        return None
    slip = "4i" if base > 1e4 else "i"
    return Fault(
        "wrong exponent",
        f"frequencies fall as 10000^(−{slip}/width), which is base {base:,.0f}: the pair index was "
        f"{'doubled twice' if slip == '4i' else 'not doubled'}",
        base,
        10_000.0,
    )


def precision(subject: RotarySubject) -> dict[int, float]:
    """Largest error of cosines and sines against exact values, by position."""
    found = schedule_of(subject)
    if found is None:
        return {}
    partners, angles = frequencies_of(subject)
    schedule = found[0] if len(found[0]) == len(angles) else FromCheckpoint(tuple(angles.tolist()))
    exact = Rotary(schedule).table(torch.tensor(FAR), dtype=torch.float64)
    errors = {}
    for index, position in enumerate(FAR):
        try:
            turn = subject.matrix(position) if subject.moves or position <= 10_000 else None
        except Exception:
            turn = None
        if turn is None:
            break
        cos = turn.diagonal()[partners]
        errors[position] = (cos - exact[index, 0]).abs().max().item()
    return errors


QUESTIONS = (
    encodes_the_sequence,
    is_relative,
    decodes_as_it_prefills,
    shares_no_state,
    survives_a_cast,
    keeps_positions_apart,
    has_the_usual_exponent,
)
