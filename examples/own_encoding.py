"""An encoding of your own: written in a dozen lines, put through every check, and trained with.

python examples/own_encoding.py
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from posenc import Positional, RelativeBias
from posenc.testing import Case, battery
from posenc.transformer import Encoder


class Rooted(RelativeBias):
    """bias(h, q, k) = −2^(−h) · √|q − k|"""

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads

    def profile(self, distance, *, dtype=None):
        """All else follows from this: decoding, packing, shards, memory that does not explode."""
        distance = torch.as_tensor(distance)
        rates = torch.tensor([-(2.0**-h) for h in range(self.heads)], device=distance.device)
        roots = distance.abs().double().sqrt()
        return (rates.view(-1, *[1] * distance.ndim) * roots).to(dtype or torch.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--length", type=int, default=24)
    options = parser.parse_args()
    torch.manual_seed(0)

    passed = 0
    for check in battery(Case(Rooted, {"heads": 4}), compiling=False):
        check()  # raises where something does not hold
        passed += 1
    print(f"{passed} checks passed")

    # Which number stood just before? With no positions the nearest cannot be told from the others.
    encoder = Encoder(
        32, 2, depth=1, positional=Positional(scores=Rooted(2)), is_causal=True, norm="pre"
    )
    embedding, head = nn.Embedding(8, 32), nn.Linear(32, 8)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *embedding.parameters(),
                                   *head.parameters()], lr=1e-2)  # fmt: skip
    for step in range(options.steps):
        ids = torch.randint(8, (32, options.length))
        said = head(encoder(embedding(ids)))[:, 1:]
        loss = F.cross_entropy(said.flatten(0, 1), ids[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, options.steps // 8) == 0 or step == options.steps - 1:
            print(f"step {step}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
