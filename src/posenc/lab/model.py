"""The model of the lab: tokens, an encoder, and logits; the body is the same for every encoding."""

from hashlib import sha256

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.encodings.positional import Positional
from posenc.lab.configuration import ModelSize
from posenc.transformer.encoder import Encoder


class Model(nn.Module):
    """Token ids to logits.

    Embeddings have a standard deviation of 1, which is what additive encodings must be measured by:
    a learned table of 0.02 would hardly be seen beside them.
    """

    def __init__(self, vocabulary: int, size: ModelSize, positional: nn.Module, *, is_causal: bool):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size.dim)
        self.encoder = Encoder(
            size.dim,
            size.heads,
            size.depth,
            positional=positional if isinstance(positional, Positional) else list(positional),  # type: ignore[arg-type]
            norm="pre",
            activation="gelu",
            is_causal=is_causal,
        )
        self.logits = nn.Linear(size.dim, vocabulary, bias=False)

    def forward(
        self, tokens: Int64[Tensor, "batch seq"], positions: Int64[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch seq vocabulary"]:
        """Logits of what follows each token; positions count from 0 if not given."""
        return self.logits(self.encoder(self.embedding(tokens), positions))

    def part(self, *, encodings: bool) -> dict[str, Tensor]:
        """What the encodings learn, or all the rest."""
        state = sorted(self.state_dict().items())
        return {name: each for name, each in state if (".positional." in name) == encodings}

    def learned(self) -> dict[str, int]:
        """How many numbers body and encodings learn; those that layers share count once."""
        found = {"body": 0, "encoding": 0}
        for name, each in self.named_parameters():
            found["encoding" if ".positional." in name else "body"] += each.numel()
        return found


def digest(tensors: dict[str, Tensor]) -> str:
    """A hash of names and bits."""
    found = sha256()
    for name, tensor in tensors.items():
        found.update(name.encode())
        found.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]
