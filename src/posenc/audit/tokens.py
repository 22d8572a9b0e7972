"""Questions to something that adds to embeddings, or gives what to add."""

from itertools import product

import torch
from torch import Tensor, nn

from posenc.audit.report import Fault, NotApplicableError
from posenc.audit.token_subject import SEQ, TokenSubject
from posenc.encodings.tokens import Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.positions import consecutive

BASES = (10_000.0, 1_000.0, 100.0, 100_000.0)
LENGTHS = (65_536, 16_384, 5_000, 4_096, 2_048, 1_024, 512, 128, 32)


def encodes_the_sequence(subject: TokenSubject) -> Fault | None:
    """Equal tokens of one row differ by their place; equal rows of a batch do not."""
    made = subject.added(batch=3)
    if len(made) == 1:
        raise NotApplicableError("it gives one table for all rows of a batch")
    by_row = (made - made[:1]).abs().max().item()
    by_place = (made - made[:, :1]).abs().max().item()
    if by_row > 1e-6:
        return Fault(
            "encodes the batch axis",
            f"equal rows of a batch come out up to {by_row:.3g} apart, equal tokens of one row "
            f"{by_place:.3g}: the index of the batch is encoded. Add along the sequence axis (if "
            f"input is meant to be [seq, batch, dim], say so: seq_first).",
            by_row,
        )
    if by_place == 0:
        return Fault("encodes nothing", "all positions of a row receive the same", 0.0, 1.0)
    return None


def is_the_same_at_another_length(subject: TokenSubject) -> Fault | None:
    """A position receives the same in a short row and in a long one."""
    short, long = subject.added(seq=SEQ), subject.added(seq=2 * SEQ)
    far = (long[:, :SEQ] - short).abs().max().item()
    if far < 1e-5:
        return None
    return Fault(
        "depends on the length",
        f"position by position, {SEQ} tokens and {2 * SEQ} tokens receive encodings up to "
        f"{far:.3g} apart: a model cannot be used at another length, nor decode step by step",
        far,
    )


def shares_no_state(subject: TokenSubject) -> Fault | None:
    """A call leaves no trace: neither its length nor its dtype shows in the next."""
    fresh, used = subject.added(), subject.make()
    for dtype, seq in ((torch.bfloat16, SEQ), (torch.float64, 2 * SEQ), (torch.bfloat16, SEQ)):
        try:
            subject.added(seq, dtype=dtype, by=used)
        except Exception:
            continue
    again = subject.added(by=used)
    far = (again.double() - fresh.double()).abs().max().item()
    if far == 0 and again.dtype == fresh.dtype:
        return None
    return Fault(
        "shares state between calls",
        f"after calls in bfloat16 and float64, a float32 call gives {again.dtype} that is up to "
        f"{far:.3g} away from a fresh one: something is cached by less than all that shapes it",
        far,
    )


def survives_a_cast(subject: TokenSubject) -> Fault | None:
    """``.bfloat16()`` and back leaves the table as it was."""
    module = subject.make()
    if not isinstance(module, nn.Module):
        raise NotApplicableError("it is no module")
    if any(True for _ in module.parameters()):
        raise NotApplicableError("it has parameters, which a cast must round")
    seq = SEQ * 40
    try:
        before = subject.added(seq)
        after = subject.added(seq, by=module.bfloat16().float())
    except Exception as error:
        raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    far = (after.double() - before.double()).abs().max().item()
    if far == 0:
        return None
    return Fault(
        "breaks when cast",
        f"after .bfloat16() and back, encodings of {seq} positions are up to {far:.3g} off: a "
        f"buffer is rounded with the weights",
        far,
    )


def keeps_dtype(subject: TokenSubject) -> Fault | None:
    """bfloat16 in, bfloat16 out."""
    if subject.scale is None:
        raise NotApplicableError("it gives a table, which may be wider")
    try:
        made = subject.added(dtype=torch.bfloat16)
    except Exception as error:
        raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    if made.dtype == torch.bfloat16:
        return None
    return Fault(
        "changes the dtype",
        f"bfloat16 embeddings come back as {made.dtype}: the rest of the model runs in that",
        torch.finfo(made.dtype).bits,
        16,
    )


def keeps_positions_apart(subject: TokenSubject) -> Fault | None:
    """What bfloat16 embeddings receive differs from position to position."""
    seq = longest(subject, 4096)
    try:
        made = subject.added(seq, dtype=torch.bfloat16)[0]
    except Exception as error:
        raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    distinct = len(made.unique(dim=0))
    own = len(subject.added(seq)[0].bfloat16().unique(dim=0))
    if distinct >= own:
        return None
    return Fault(
        "loses positions in bfloat16",
        f"of {seq} positions only {distinct} receive something of their own in bfloat16, where "
        f"rounding the same table once leaves {own}: positions or angles are computed in bfloat16",
        distinct,
        own,
    )


def longest(subject: TokenSubject, most: int = LENGTHS[0]) -> int:
    """A length that it accepts, as long as is tried."""
    for seq in LENGTHS:
        if seq <= most and seq * subject.dim <= 2**24:
            try:
                if subject.added(seq).shape[1] == seq:
                    return seq
            except Exception:
                continue
    raise NotApplicableError("it takes none of the lengths that were tried")


def convention_of(subject: TokenSubject) -> tuple[Sinusoidal, float] | None:
    """The sinusoidal convention and base that it computes, and how far off, if it is one."""
    made, best = subject.added(32 if subject.dim > 4 else 8)[0].double(), None
    for name, base in product(CONVENTIONS, BASES):
        try:
            ours = Sinusoidal(subject.dim, base, convention=name)
        except ValueError:
            continue
        far = (made - ours.table(consecutive(len(made)), dtype=torch.float64)).abs().max().item()
        if best is None or far < best[1]:
            best = ours, far
    return best if best is not None and best[1] < 5e-3 else None


def follows_a_convention(subject: TokenSubject) -> Fault | None:
    """The exponents are those of a published convention, and pairs share a frequency."""
    found = convention_of(subject)
    if found is None:
        raise NotApplicableError("it follows no sinusoidal convention known here (learned?)")
    ours, _ = found
    if ours.keeps_shift or ours.convention.name == "per_dimension_one_based":
        return None
    table = subject.added(64)[0].double()
    residual = _shift_residual(table)
    return Fault(
        "wrong exponent",
        f"channel j turns with {ours.convention.formula} (convention {ours.convention.name!r}): "
        f"the channel index stands where the paper's i counts pairs, so a sine and a cosine never "
        f"share a frequency. No linear map shifts by one position; the best one misses by "
        f"{residual:.2g}. Old checkpoints load with Sinusoidal(convention="
        f"{ours.convention.name!r})",
        residual,
    )


def _shift_residual(table: Tensor) -> float:
    """How far the best linear map is from taking each row to the next."""
    rows = table[:-1]
    shift = torch.linalg.lstsq(rows, table[1:], driver="gelsd").solution
    return (rows @ shift - table[1:]).abs().max().item()


def precision(subject: TokenSubject) -> dict[int, float]:
    """Largest error against exact values up to each of some positions."""
    found = convention_of(subject)
    if found is None:
        return {}
    ours, seq = found[0], longest(subject)
    made = subject.added(seq)[0].double()
    far = (made - ours.table(consecutive(seq), dtype=torch.float64)).abs().amax(1)
    marks = [mark for mark in (100, 1_000, 10_000, 100_000) if mark < seq]
    return {mark: far[: mark + 1].max().item() for mark in [*marks, seq - 1]}


QUESTIONS = (
    encodes_the_sequence,
    is_the_same_at_another_length,
    shares_no_state,
    survives_a_cast,
    keeps_dtype,
    keeps_positions_apart,
    follows_a_convention,
)
