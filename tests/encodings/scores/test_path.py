"""PaTH against products of its reflections, one after the other, and in known limits."""

import torch

from posenc import PaTH

HEADS, KV_HEADS, WIDTH, DIM = 4, 2, 6, 5


def example(seq: int = 8):
    """The encoding, queries and keys, and the hidden state."""
    torch.manual_seed(0)
    path = PaTH(HEADS, WIDTH, DIM, KV_HEADS, rank=3, std=1.0).double()
    q, k = torch.randn(2, HEADS, seq, WIDTH).double(), torch.randn(2, KV_HEADS, seq, WIDTH).double()
    return path, q, k, torch.randn(2, seq, DIM).double()


def scores_of(q: torch.Tensor, k: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
    return q @ k.repeat_interleave(HEADS // KV_HEADS, dim=1).mT * scale


def encoded(path, q, k, x, *positions) -> torch.Tensor:
    return path(scores_of(q, k), *positions, q=q, k=k, scale=0.5, q_hidden=x, k_hidden=x).detach()


def by_reflections(path: PaTH, q, k, x) -> torch.Tensor:
    """Equation by equation: the key goes through H of every token after it, up to the query's."""
    made = scores_of(q, k)
    inner = x @ path.down.T @ path.weight.T
    beta = 2 / (1 + torch.exp(-(x @ path.beta_weight.T + path.beta_bias)))
    for row in range(len(x)):
        for head in range(HEADS):
            of = head // (HEADS // KV_HEADS)
            u = inner[row, :, of * WIDTH : (of + 1) * WIDTH]
            w = u / torch.sqrt((u**2).sum(-1, keepdim=True) + 1e-6)
            for i in range(x.shape[1]):
                for j in range(i + 1):
                    key = k[row, of, j]
                    for at in range(j + 1, i + 1):
                        reflection = torch.eye(WIDTH) - beta[row, at, of] * torch.outer(
                            w[at], w[at]
                        )
                        key = reflection @ key
                    made[row, head, i, j] = 0.5 * q[row, head, i] @ key
    return made.detach()


def test_it_is_the_product_of_its_reflections():
    path, q, k, x = example()
    torch.testing.assert_close(encoded(path, q, k, x), by_reflections(path, q, k, x))
