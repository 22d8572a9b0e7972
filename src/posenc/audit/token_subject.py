"""How to call something that adds to embeddings, or gives what to add."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.report import CannotCheckError

WIDTH_NAMES = (
    "dim", "d_model", "embed_dim", "embedding_dim", "channels", "org_channels", "hidden_size",
    "num_pos_feats", "model_dim", "emb_dim", "n_embd", "size",
)  # fmt: skip
WIDTHS = (64, 128, 512, 256, 32, 16, 768, 8)
SEQ = 12


@dataclass(frozen=True)
class TokenSubject:
    """Something that meets embeddings ``[batch, seq, dim]``.

    Attributes:
        make: Builds a fresh one.
        dim: Width of the embeddings.
        scale: What it multiplies embeddings with; ``None`` if it gives the table alone.
        seq_first: Whether its input is ``[seq, batch, dim]``, as the user says.
    """

    make: Callable[[], Any]
    dim: int
    scale: float | None
    seq_first: bool

    def added(
        self, seq: int = SEQ, batch: int = 1, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> Tensor:
        """What zeros ``[batch, seq, dim]`` receive."""
        x = torch.zeros(batch, seq, self.dim, dtype=dtype)
        by = self.make() if by is None else by
        with torch.no_grad():
            made = by(x.transpose(0, 1) if self.seq_first else x)
        if made.ndim == 2:
            made = made.unsqueeze(1 if self.seq_first else 0)
        return made.transpose(0, 1) if self.seq_first else made

    @property
    def understood(self) -> str:
        """How it was called."""
        does = "gives what to add" if self.scale is None else "adds to its input"
        if self.scale not in (None, 1.0):
            does += f", which it multiplies with {self.scale:.4g}"
        order = "[seq, batch, dim]" if self.seq_first else "[batch, seq, dim]"
        return f"takes {order} of width {self.dim} and {does}"


def token_subject(make: Callable[[], Any], dim: int | None, seq_first: bool) -> TokenSubject:
    """Find out how ``make()`` meets embeddings.

    Raises:
        CannotCheckError: It does so in no way known here.
    """
    said: list[str] = []
    thing = make()
    for width in _widths(thing, dim):
        zeros = torch.zeros(2, 6, width)
        try:
            with torch.no_grad():
                nothing, ones = (make()(x) for x in (zeros, zeros + 1))
        except Exception as error:
            said.append(f"width {width}: {type(error).__name__}: {error}")
            continue
        if (
            not isinstance(nothing, Tensor)
            or nothing.shape[-1] != width
            or nothing.ndim not in (2, 3)
        ):
            continue
        gained = ones - nothing
        if gained.ndim == 3 and gained.abs().max() == 0:
            return TokenSubject(make, width, None, seq_first)
        if gained.shape == zeros.shape and (gained - gained.mean()).abs().max() < 1e-4:
            return TokenSubject(make, width, round(gained.mean().item(), 5), seq_first)
        if gained.ndim == 2 and gained.abs().max() == 0:
            return TokenSubject(make, width, None, seq_first)
    raise CannotCheckError("; ".join(said[:2]) or "it does not take embeddings")


def _widths(thing: Any, dim: int | None) -> list[int]:
    if dim is not None:
        return [dim]
    found = []
    parts = list(thing.modules()) if isinstance(thing, nn.Module) else [thing]
    for part, name in product(parts, WIDTH_NAMES):
        value = getattr(part, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            found.append(value)
    if isinstance(thing, nn.Module):
        found += [t.shape[-1] for t in (*thing.buffers(), *thing.parameters()) if t.ndim > 1]
    return [*dict.fromkeys((*found, *WIDTHS))]
