"""Train a small vision transformer on one grid of patches, and ask it on a larger one.

    python examples/vision.py --steps 300

An image has two bright patches; is the redder one above the other or below? Only positions tell.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from posenc import AxialRotary, Positional
from posenc.positions import grid
from posenc.transformer import Encoder

DIM, HEADS, PATCH = 32, 2, 4


class ViT(nn.Module):
    """Images in, scores of two answers out; a patch knows its row and its column."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, PATCH, stride=PATCH)
        rotary = AxialRotary(DIM // HEADS, base=100.0)
        self.encoder = Encoder(
            DIM, HEADS, depth=2, positional=Positional(queries_keys=rotary), norm="pre"
        )
        self.head = nn.Linear(DIM, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images)
        points = grid(*x.shape[-2:]).expand(len(x), -1, -1)  # [images, patches, 2]: row, column
        return self.head(self.encoder(x.flatten(2).mT, positions=points).mean(1))


def drawn(count: int, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of side × side patches with some noise, and the answers."""
    images = torch.randn(count, 3, side * PATCH, side * PATCH) * 0.1
    answers = torch.randint(2, (count,))
    for image, answer in zip(images, answers.tolist(), strict=True):
        upper, lower = torch.randperm(side)[:2].sort().values.tolist()
        for channel, row in ((0, upper if answer else lower), (2, lower if answer else upper)):
            column = int(torch.randint(side, ()))
            there = (
                slice(row * PATCH, (row + 1) * PATCH),
                slice(column * PATCH, (column + 1) * PATCH),
            )
            image[channel][there] += 2.0
    return images, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--side", type=int, default=6, help="patches along an edge, in training")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(options.steps):
        images, answers = drawn(64, options.side)
        loss = F.cross_entropy(model(images), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, options.steps // 8) == 0 or step == options.steps - 1:
            print(f"step {step}  loss {loss.item():.4f}")
    for side in (options.side, options.side + 2):
        images, answers = drawn(256, side)
        with torch.no_grad():
            right = (model(images).argmax(-1) == answers).float().mean()
        print(f"{side} x {side} patches: {right:.2f} right")


if __name__ == "__main__":
    main()
