"""What a call costs where tensors are small: ours beside torch alone, in times of the floor."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import Case
from posenc import ALiBi, Positional, Rotary, Sinusoidal, T5Bias, attention
from posenc.transformer import Encoder, KeyValueCache

DIM, HEADS, DEPTH, PROMPT = 64, 4, 12, 16


def cases(quick: bool) -> Iterator[Case]:
    """Encodings, attention of 16 tokens, a step of decoding, a prompt, a step of training."""
    yield added()
    yield rotated()
    yield attended()
    yield decoded()
    yield read()
    if not quick:
        yield trained()


def added() -> Case:
    x, table, encoding = torch.randn(1, 8, DIM), torch.randn(1, 8, DIM), Sinusoidal(DIM).eval()
    return Case(
        "calls: 8 × 64 added", {"posenc, Sinusoidal(x)": lambda: encoding(x)}, lambda: x + table,
        against="x + table",
    )  # fmt: skip


def rotated() -> Case:
    x, rotary = torch.randn(1, 8, 16, 64), Rotary(64)
    run = {"posenc, Rotary(q, k)": lambda: rotary(x, x)}
    return Case("calls: 8 × 16 × 64 rotated", run, x.clone, against="clone")


def attended() -> Case:
    x = torch.randn(1, 8, 16, 64)
    kinds = {
        "none": None,
        "rotary": Positional(queries_keys=Rotary(64)),
        "ALiBi": Positional(scores=ALiBi(8)),
        "T5": Positional(scores=T5Bias(8)),
    }

    def ours(positional: Positional | None) -> Callable[[], Tensor]:
        return lambda: attention(x, x, x, positional=positional, is_causal=True)

    def alibi_by_hand() -> Tensor:
        distance = torch.arange(16)[:, None] - torch.arange(16)
        slopes = torch.tensor(ALiBi(8).slopes)[:, None, None]
        mask = (-slopes * distance).masked_fill(distance < 0, -torch.inf)
        return F.scaled_dot_product_attention(x, x, x, mask)

    return Case(
        "calls: attention 8 × 16 × 64, causal",
        {f"posenc, {name}": ours(each) for name, each in kinds.items()}
        | {"ALiBi by hand": alibi_by_hand},
        lambda: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        against="SDPA",
    )


def bare_block() -> Callable[..., Tensor]:
    """A pre-norm block of torch's modules that knows no position, with room for 64 keys."""
    norms = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
    qkv, out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
    up, down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
    kept = torch.randn(2, 1, HEADS, 64, DIM // HEADS)

    def run(x: Tensor, at: int | None = None) -> Tensor:
        seq = x.shape[1]
        q, k, v = qkv(norms[0](x)).view(1, seq, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if at is not None:
            kept[0, :, :, at : at + 1], kept[1, :, :, at : at + 1] = k, v
            k, v = kept[:, :, :, : at + 1]
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=at is None)
        x = x + out(attended.transpose(1, 2).reshape(1, seq, DIM))
        return x + down(F.relu(up(norms[1](x))))

    return run


def bare() -> Callable[..., Tensor]:
    blocks = [bare_block() for _ in range(DEPTH)]

    def run(x: Tensor, at: int | None = None) -> Tensor:
        for block in blocks:
            x = block(x, at)
        return x

    return run


def encoder() -> Encoder:
    positional = Positional(queries_keys=Rotary(DIM // HEADS))
    return Encoder(DIM, HEADS, DEPTH, positional=positional, is_causal=True, norm="pre").eval()


def decoded() -> Case:
    model, torchs, x = encoder(), bare(), torch.randn(1, 1, DIM)
    cache = KeyValueCache()
    model(torch.randn(1, 40, DIM), cache=cache)

    def step() -> None:
        model(x, cache=cache)
        cache.crop(40)

    return Case(
        f"calls: {DEPTH} blocks, one step behind 40 tokens", {"posenc, rotary": step},
        lambda: torchs(x, 40), against="bare modules",
    )  # fmt: skip


def read() -> Case:
    model, torchs, x = encoder(), bare(), torch.randn(1, PROMPT, DIM)
    contenders = {
        "posenc, rotary": lambda: model(x, cache=KeyValueCache()),
        "posenc, without a cache": lambda: model(x),
    }
    return Case(
        f"calls: {DEPTH} blocks, a prompt of {PROMPT}", contenders, lambda: torchs(x),
        against="bare modules",
    )  # fmt: skip


def trained() -> Case:
    """Two layers as the lab trains them, beside torch's with a table that is added."""
    dim, heads, depth, batch, seq = 64, 4, 2, 32, 64
    x, table = torch.randn(batch, seq, dim), torch.randn(seq, dim)
    layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
    ours = Encoder(dim, heads, depth, positional=Positional(Sinusoidal(dim)))

    def step(model: nn.Module, given: Callable[[], Tensor]) -> Callable[[], None]:
        optimizer = torch.optim.AdamW(model.parameters())

        def run() -> None:
            optimizer.zero_grad()
            model(given()).square().mean().backward()
            optimizer.step()

        return run

    return Case(
        f"calls: a step of training, {depth} layers, {batch} × {seq} × {dim}",
        {"posenc, Sinusoidal": step(ours, lambda: x)},
        step(theirs, lambda: x + table),
        against="nn.TransformerEncoder",
        gradients=True,
    )
