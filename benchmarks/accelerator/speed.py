"""How fast it is on the card, as shares of the speed of a copy there, beside its peers."""

import time
import traceback
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional as F

from benchmarks import addition, attention, rotary, table_construction
from benchmarks.harness import Case, Timing, bytes_of, copying, measure
from posenc import ALiBi, Positional, Rotary, T5Bias
from posenc.transformer import Encoder, KeyValueCache

TINY = {
    rotary: {"HEADS": 2, "KV_HEADS": 1, "WIDTH": 8},
    attention: {"HEADS": 2, "WIDTH": 8},
    addition: {"VOCABULARY": 20},
}


def timings(tiny: bool, deadline: float) -> tuple[list[Timing], dict[str, str]]:
    """Everything that was measured, and what was left out, with the reason."""
    if tiny:
        for module, sizes in TINY.items():
            vars(module).update(sizes)
    found: list[Timing] = []
    left_out: dict[str, str] = {}
    for name, made in _cases(tiny):
        if time.monotonic() > deadline:
            left_out[name] = "time"
            continue
        print(name, flush=True)
        try:
            found += measure(made(), 1 if tiny else 9)
        except Exception as error:
            traceback.print_exc()
            left_out[name] = f"{type(error).__name__}: {error}"[:400]
        if torch.get_default_device().type == "cuda":
            torch.cuda.empty_cache()
    return found, left_out


def _cases(tiny: bool) -> Iterator[tuple[str, Callable[[], Case]]]:
    """What matters most comes first: time may run out."""
    dtypes = (torch.float32, torch.bfloat16)
    for dtype in dtypes:
        yield f"rotary, {dtype}", lambda d=dtype: rotary.prompt(4 if tiny else 4096, d)
    for rows in (1, 32):
        yield f"rotary, {rows} rows", lambda r=rows: rotary.decoding(1 if tiny else r)
    for dtype in dtypes:
        shape = (2, 4, 8) if tiny else (32, 2048, 1024)
        yield (
            f"sum, {dtype}",
            lambda d=dtype, s=shape: addition.summed(torch.randn(s).to(d), 0.0, compiled=True),
        )
        yield (
            f"sum with dropout, {dtype}",
            lambda d=dtype, s=shape: addition.summed(torch.randn(s).to(d), 0.1, compiled=True),
        )
    for rows, dim in [(5, 8)] if tiny else [(512, 64), (131_072, 128), (524_288, 128)]:
        yield f"table {rows} × {dim}", lambda r=rows, d=dim: table_construction.whole(r, d)
    length = 8 if tiny else 4096
    for causal in (False, True):
        yield f"attention, causal {causal}", lambda c=causal: attention.forward(length, c)
    yield "attention, backward", lambda: attention.backward(length)
    yield "rotary, backward", lambda: rotary.backward(4 if tiny else 4096)
    yield "a decode step", lambda: _decode_step(tiny)
    for scores in (None, ALiBi, T5Bias):
        name = "Rotary" if scores is None else scores.__name__
        yield f"a compiled model, {name}", lambda s=scores, n=name: _compiled_model(s, n, tiny)


def _model(scores, tiny: bool) -> Encoder:
    dim, heads, depth = (16, 2, 1) if tiny else (1024, 16, 8)
    positional = Positional(
        queries_keys=Rotary(dim // heads), scores=() if scores is None else scores(heads)
    )
    model = Encoder(dim, heads, depth, positional=positional, is_causal=True, norm="pre").eval()
    return model if tiny else model.bfloat16()


def _decode_step(tiny: bool) -> Case:
    """One token behind a cache; at best, every weight is read once."""
    model = _model(None, tiny)
    prompt, size = (3, 8) if tiny else (1000, 2048)
    weights = list(model.parameters())
    x = torch.randn(1, prompt, model.dim, dtype=weights[0].dtype)

    def stepping(step, size: int | None) -> Callable[[], object]:
        cache = KeyValueCache(size)
        model(x, cache=cache)

        def run() -> None:
            step(x[:, :1], cache=cache)
            cache.crop(prompt)

        return run

    with torch.no_grad():
        contenders = {
            "posenc, growing cache": stepping(model, None),
            "posenc, fixed cache": stepping(model, size),
            "posenc, fixed cache, compiled": stepping(torch.compile(model), size),
        }
    return Case(
        f"one token, {model.depth} layers of {model.dim}",
        contenders,
        copying(*weights),
        against="copy of the weights",
        copied=bytes_of(*weights),
        moved=bytes_of(*weights),
    )


def _compiled_model(scores, name: str, tiny: bool) -> Case:
    """A forward and a backward pass, beside one without positions."""
    model, bare = _model(scores, tiny).train(), _model(None, tiny).train()
    bare.positional = Positional()
    x = torch.randn(1, 4 if tiny else 2048, model.dim, dtype=next(model.parameters()).dtype)
    compiled, plain = torch.compile(model), torch.compile(bare)

    def both(run) -> Callable[[], object]:
        return lambda: F.mse_loss(run(x), x).backward()

    return Case(
        f"forward and backward with {name}, {model.depth} layers of {model.dim}",
        {"posenc, eager": both(model), "posenc, compiled": both(compiled)},
        both(plain),
        against="no positions, compiled",
        gradients=True,
    )
