"""Train a small GPT of bytes with any encoding, and let it go on with a text from a cache.

python examples/small_gpt.py --encoding rotary --steps 400
"""

import argparse
import inspect
import statistics

import torch
from torch import nn
from torch.nn import functional as F

from posenc import ALiBi, Positional, Rotary, Sinusoidal, T5Bias
from posenc.transformer import Encoder, KeyValueCache, TokenEmbedding

DIM, HEADS = 64, 4
ENCODINGS = {
    "none": lambda: Positional(),
    "sinusoidal": lambda: Positional(tokens=Sinusoidal(DIM)),
    "rotary": lambda: Positional(queries_keys=Rotary(DIM // HEADS)),
    "alibi": lambda: Positional(scores=ALiBi(HEADS)),
    "t5": lambda: Positional(scores=T5Bias(HEADS, bidirectional=False)),
}


class GPT(nn.Module):
    """Bytes in, scores of the next byte out."""

    def __init__(self, positional: Positional):
        super().__init__()
        self.embedding = TokenEmbedding(256, DIM)
        self.encoder = Encoder(
            DIM, HEADS, depth=2, positional=positional, is_causal=True, norm="pre"
        )
        self.head = nn.Linear(DIM, 256)

    def forward(self, ids: torch.Tensor, cache: KeyValueCache | None = None) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(ids), cache=cache))


def train(model: GPT, text: torch.Tensor, steps: int, length: int) -> None:
    """Rows from anywhere in the text; at each byte the next one is guessed."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        starts = torch.randint(len(text) - length - 1, (16,)).tolist()
        rows = torch.stack([text[start : start + length + 1] for start in starts])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 8) == 0 or step == steps - 1:
            print(f"step {step}  loss {loss.item():.4f}")


@torch.no_grad()
def continued(model: GPT, prompt: str, count: int) -> str:
    """The likeliest bytes, one by one; a step sees one byte, and the cache the rest."""
    cache, said = KeyValueCache(), torch.tensor([list(prompt.encode())])
    made = said
    for _ in range(count):
        said = model(said, cache)[:, -1].argmax(-1, keepdim=True)
        made = torch.cat((made, said), dim=1)
    return bytes(made[0].tolist()).decode(errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoding", choices=list(ENCODINGS), default="rotary")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(0)
    text = torch.tensor(list(inspect.getsource(statistics).encode()))
    model = GPT(ENCODINGS[options.encoding]())
    train(model, text, options.steps, options.length)
    print(continued(model.eval(), "def mean(", 100))


if __name__ == "__main__":
    main()
