"""Is it right on the card: bits of tables, kernels, attention, gradients, the contract battery."""

import importlib
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.accelerator.stand_in import reference
from posenc import KERPLE, ALiBi, Positional, Rotary, Sinusoidal, T5Bias, attention
from posenc.positions import consecutive
from posenc.transformer import Encoder, KeyValueCache, TokenEmbedding

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
PLACES = (0, 10**5, 10**7, 2**40, 2**62 - 64)
QUICK = {"learned", "alibi", "t5", "shaw"}
"""Of the battery, for the interpreter, which takes minutes over long tables."""
CONTRACTS = Path(__file__).parents[2] / "tests" / "contracts"


@dataclass(frozen=True)
class Outcome:
    """One check.

    Attributes:
        section: What it belongs to.
        name: What was checked.
        state: ``"held"``, ``"failed"`` or ``"left out"``.
        told: Why it failed or was left out.
    """

    section: str
    name: str
    state: str
    told: str = ""


def outcomes(device: torch.device, tiny: bool, deadline: float) -> Iterator[Outcome]:
    """Every check, one after the other; what fails is told and ends nothing."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    for section, checks in SECTIONS.items():
        print(section, flush=True)
        for name, check in checks(device, tiny):
            yield _outcome(section, name, check)
    yield from _battery(device, tiny, deadline)


def _outcome(section: str, name: str, check: Callable[[], object]) -> Outcome:
    try:
        check()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Outcome(section, name, "failed", told.strip()[:400])
    return Outcome(section, name, "held")


Checks = Iterator[tuple[str, Callable[[], object]]]


def _same(found: Tensor, expected: Tensor, bound: float = 0.0) -> None:
    found = found.detach().to("cpu")
    assert found.dtype == expected.dtype, f"{found.dtype}, not {expected.dtype}"
    if bound == 0.0:
        wrong = int((found != expected).sum())
        assert not wrong, f"{wrong} of {found.numel()} numbers differ from those of the CPU"
        return
    error = float((found - expected).abs().max() / expected.abs().max().clamp(min=1.0))
    assert error <= bound, f"{error:.2e} away from the CPU, more than {bound:.0e}"


def _both(device: torch.device, made: Callable[[torch.device], Tensor], bound: float = 0.0) -> None:
    """What is made on the device beside what is made on the CPU."""
    found = made(device)
    with reference():
        expected = made(torch.device("cpu")).detach()
    _same(found, expected, bound)


def _stored(tiny: bool) -> tuple[torch.dtype, ...]:
    """The interpreter cuts float32 off to bfloat16, where a card rounds."""
    return (torch.float32, torch.float16) if tiny else DTYPES


def _tables(device: torch.device, tiny: bool) -> Checks:
    rows = 7 if tiny else 4096
    for encoding in (Sinusoidal(64), Rotary(128), Rotary(64, pairing="interleaved")):
        for dtype in DTYPES[: 1 if tiny else None]:
            for first in PLACES:
                yield (
                    f"{encoding} in {dtype} from {first}",
                    lambda e=encoding, d=dtype, f=first: _both(
                        device,
                        lambda at: e.table(consecutive(min(rows, 64), start=f, device=at), dtype=d),
                    ),
                )
    scattered = torch.randint(0, 2**62, (rows,), generator=torch.Generator().manual_seed(1))
    yield (
        f"{rows} scattered positions",
        lambda: _both(device, lambda at: Rotary(64).table(scattered.to(at))),
    )


def _rotations(device: torch.device, tiny: bool) -> Checks:
    length, width = (3, 8) if tiny else (513, 128)
    for pairing in ("half", "interleaved"):
        rotary = Rotary(width, pairing=pairing)
        table = rotary.table(consecutive(length), dtype=torch.float32)
        for dtype in _stored(tiny):
            q = torch.randn(2, 4, length, width).to(dtype)

            def made(at, q=q, rotary=rotary, table=table, out=False):
                x = q.to(at, copy=True)
                k = x[:, :2].clone()
                outs = (x, k) if out else None
                return torch.cat(rotary.encode_both(x, k, table.to(at), out=outs), 1)

            for out in (False, True):
                place = "in place" if out else "fresh"
                yield (
                    f"{pairing}, {dtype}, {place}",
                    lambda made=made, out=out: _both(device, lambda at: made(at, out=out)),
                )
        yield (f"{pairing}, gradients", lambda r=rotary, t=table: _both(
            device, lambda at: _gradient(r, t, at, length, width)))  # fmt: skip


def _gradient(rotary: Rotary, table: Tensor, at: torch.device, length: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    q = torch.randn(1, 2, length, width, generator=generator).to(at).requires_grad_()
    upstream = torch.randn(1, 2, length, width, generator=generator).to(at)
    made = rotary.encode_queries(q, table.to(at))
    return torch.autograd.grad(made, q, upstream)[0]


def _sums(device: torch.device, tiny: bool) -> Checks:
    length, dim = (3, 8) if tiny else (513, 512)
    for scale in (None, "sqrt_dim"):
        for dtype in _stored(tiny):
            encoding, x = Sinusoidal(dim, scale=scale), torch.randn(2, length, dim).to(dtype)
            yield (
                f"scale {scale}, {dtype}",
                lambda e=encoding, x=x: _both(device, lambda at: e(x.to(at))),
            )
    embedding, ids = TokenEmbedding(50, dim), torch.randint(50, (2, length))
    table = Sinusoidal(dim).table(consecutive(length))

    def embedded(at: torch.device) -> Tensor:
        return embedding.to(at)(ids.to(at), table.to(at))

    yield "embedding, then the sum", lambda: _both(device, embedded)


def _attention(device: torch.device, tiny: bool) -> Checks:
    length, width = (9, 8) if tiny else (1024, 64)
    torch.manual_seed(0)
    content = [torch.randn(2, 4, length, width) for _ in range(3)]
    documents = torch.arange(length).ge(length // 3).long().expand(2, -1)
    for bias in (None, ALiBi(4), T5Bias(4), KERPLE(4)):
        positional = Positional(queries_keys=Rotary(width), scores=() if bias is None else bias)
        for given in ({}, {"is_causal": True}, {"is_causal": True, "document_ids": documents}):

            def made(at, positional=positional, given=given):
                some = [t.to(at).requires_grad_() for t in content]
                told = {n: v.to(at) if isinstance(v, Tensor) else v for n, v in given.items()}
                out = attention(*some, positional=positional.to(at), **told)
                gradients = torch.autograd.grad(out.square().sum(), some)
                return torch.cat([out, *gradients])

            order = "causal" if given else "all see all"
            packed = ", packed" if "document_ids" in given else ""
            name = "Rotary alone" if bias is None else f"Rotary and {type(bias).__name__}"
            yield f"{name}, {order}{packed}", lambda made=made: _both(device, made, 2e-4)


def _models(device: torch.device, tiny: bool) -> Checks:
    dim, length = (16, 7) if tiny else (256, 200)
    torch.manual_seed(0)
    positional = Positional(tokens=Sinusoidal(dim), queries_keys=Rotary(dim // 4), scores=ALiBi(4))
    model = Encoder(dim, 4, 2, positional=positional, is_causal=True).eval()
    x = torch.randn(2, length, dim)

    def trained(at: torch.device) -> Tensor:
        model.to(at).zero_grad()
        model(x.to(at)).square().sum().backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    def decoded(at: torch.device, size: int | None = None, compiled: bool = False) -> Tensor:
        step, cache = model.to(at), KeyValueCache(size)
        step = torch.compile(step) if compiled else step
        with torch.no_grad():
            made = [model(x[:, :-3].to(at), cache=cache)]
            made += [step(x[:, i : i + 1].to(at), cache=cache) for i in range(length - 3, length)]
        return torch.cat(made, 1)

    def compiled(at: torch.device) -> Tensor:
        with torch.no_grad():
            return (torch.compile(model.to(at), fullgraph=True))(x.to(at))

    def left_padded(at: torch.device) -> Tensor:
        real = torch.ones(2, length, dtype=torch.bool, device=at)
        real[0, :2] = False
        with torch.no_grad():
            return model.to(at)(x.to(at), padding_mask=real)[:, 2:]

    yield "gradients of an encoder", lambda: _both(device, trained, 1e-3)
    yield "decoding, growing cache", lambda: _both(device, decoded, 2e-4)
    yield "decoding, fixed cache", lambda: _both(device, lambda at: decoded(at, length), 2e-4)
    yield (
        "decoding, fixed cache, compiled",
        lambda: _both(device, lambda at: decoded(at, length, at == device), 2e-4),
    )
    yield "a compiled encoder", lambda: _both(device, compiled, 2e-4)
    yield "left padding", lambda: _both(device, left_padded, 2e-4)
    yield "half, bfloat16 and back leave tables alone", lambda: _cast(model, device, dim)


def _cast(model: nn.Module, device: torch.device, dim: int) -> None:
    before = Sinusoidal(dim).to(device).half().bfloat16().float()
    positions = consecutive(16, start=10**6, device=device)
    assert torch.equal(before.table(positions), Sinusoidal(dim).table(positions))


SECTIONS: dict[str, Callable[[torch.device, bool], Checks]] = {
    "tables, bit for bit": _tables,
    "rotations, bit for bit": _rotations,
    "sums, bit for bit": _sums,
    "attention": _attention,
    "models": _models,
}


def _battery(device: torch.device, tiny: bool, deadline: float) -> Iterator[Outcome]:
    """The contract of every encoding of the test suite, its content and parameters on the card."""
    section = "contract battery"
    try:
        cases = _cases()
    except ImportError as error:
        yield Outcome(section, "all", "left out", f"the test suite cannot be read: {error}")
        return
    from posenc.testing import battery

    names = [name for name in cases if not tiny or name in QUICK]
    for name in names:
        if time.monotonic() > deadline:
            yield Outcome(section, name, "left out", "time")
            continue
        print(f"{section}: {name}", flush=True)
        for check in battery(cases[name], compiling=False):
            torch.set_default_device(device)
            try:
                yield _outcome(section, f"{name}: {check}", check)
            finally:
                torch.set_default_device(None)


def _cases() -> dict:
    found = {}
    for path in sorted(CONTRACTS.glob("test_*.py")):
        found |= importlib.import_module(f"tests.contracts.{path.stem}").CASES
    return found
