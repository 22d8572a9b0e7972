"""Forgetting attention: each token says how much of all before it is kept."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.between import sums_after_key
from posenc.encodings.scores.content import checked_content, products
from posenc.guards import demand, graph_looks, may_look
from posenc.positions import Integers, checked_distances, consecutive


def forgetting_bias(
    log_forget: Float[Tensor, "*batch heads k_len"],
    q_positions: Int64[Tensor, "*rows q_len"] | Integers | None = None,
    k_positions: Int64[Tensor, "*rows k_len"] | Integers | None = None,
) -> Float[Tensor, "*batch heads q_len k_len"]:
    """Σ log f_l over the tokens l after key j and not after query i.

    This is the bias of the paper for gates that a model computes itself, there from the hidden
    state: pass it to ``posenc.attention`` as ``attn_mask``. Pairs whose key comes after its query
    get 0.

    Args:
        log_forget: log f of every key, as ``torch.nn.functional.logsigmoid`` gives it.
        q_positions: Where the queries stand; if not given, they are all of the keys.
        k_positions: Where the keys stand, in the order of their row.

    Raises:
        TypeError: ``log_forget`` is not floating.
        ValueError: It is not finite, as that of a gate of 0, or positions were given for one side
            alone.

    Reference:
        Lin et al. 2025, "Forgetting Transformer" (arXiv:2503.02130).

    Example:
        >>> forgetting_bias(torch.tensor([[-9.0, -0.5, -0.25]]))
        tensor([[[ 0.0000,  0.0000,  0.0000],
                 [-0.5000,  0.0000,  0.0000],
                 [-0.7500, -0.2500,  0.0000]]])
    """
    _check_gates(log_forget)
    if (q_positions is None) != (k_positions is None):
        raise ValueError(
            "Positions were given for one side alone. Pass q_positions and k_positions, or neither."
        )
    if q_positions is None or k_positions is None:
        q_positions = k_positions = consecutive(log_forget.shape[-1], device=log_forget.device)
    return sums_after_key(log_forget.unsqueeze(-2), checked_distances(q_positions, k_positions))


def _check_gates(log_forget: Tensor) -> None:
    if not log_forget.is_floating_point():
        raise TypeError(f"log_forget is {log_forget.dtype}; it must be floating.")
    words = (
        "log_forget holds numbers that are not finite, whose sums cannot be taken off each other. "
        "For a gate that closes give a large one, as log_forget.clamp(min=-1e4)."
    )
    if graph_looks(log_forget):
        demand(log_forget.isfinite().all(), words)
    looks = log_forget.is_cpu and may_look(log_forget)
    if looks and not bool(log_forget.isfinite().all()):
        raise ValueError(words)


class Forgetting(ScoreEncoding):
    """A bias that falls with every token between key and query, as fast as those tokens say.

    score_ij += Σ_{j < l ≤ i} log f_l,  f_l = σ(w_h · k_l + b_h)

    The paper computes the gate from the hidden state of token l. Score encodings see queries and
    keys alone, so here it comes from the key vector, which is a linear image of that state: the
    same family of gates where keys are as wide as the state, a narrower one otherwise. For the
    paper's own gate, or any other, compute log f in the model and use ``forgetting_bias``.

    It is causal: pairs whose key comes after its query are left as they are. A decoded query needs
    the gates of all keys before it; a cache of keys holds them. Keys that were rotated by an
    encoding before gate as rotated. With fewer key heads than query heads each head has its own w
    and b still. A packed or padded row forgets document by document: see
    ``posenc.encodings.scores.between.sums_after_key``. A token at the position of the one before it
    is taken for padding, which nothing is forgotten for: count tokens that share a position anew.

    Args:
        heads: Number of query heads.
        head_dim: Width of a head.
        std: Standard deviation of the normal initialization of w.
        bias: First value of b; gates begin around σ(bias), 1/2 in the authors' code.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number is not positive, or no keys were given.

    Reference:
        Lin et al. 2025, "Forgetting Transformer" (arXiv:2503.02130).

    Example:
        >>> forgetting, k = Forgetting(heads=4, head_dim=8), torch.randn(1, 2, 5, 8)
        >>> forgetting(torch.zeros(1, 4, 5, 5), k=k)[0, 0, 4].diff() > 0
        tensor([True, True, True, True])
    """

    is_relative = True
    is_pairwise = False  # it sums over the tokens between

    def __init__(
        self,
        heads: int,
        head_dim: int,
        *,
        std: float = 0.02,
        bias: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim)
        check_number(0.0, std=std)
        check_number(bias=bias)
        self.heads, self.head_dim, self.std, self.first_bias = heads, head_dim, std, bias
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(heads, head_dim, **factory))
        self.bias = nn.Parameter(torch.empty(heads, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw w anew, and set b to its first value."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.constant_(self.bias, self.first_bias)

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """q − k, which says what lies between them; whole numbers whatever ``dtype``."""
        return checked_distances(q_positions, k_positions)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` with their bias, added in float32 at least and rounded once."""
        checked_content("Forgetting", self.heads, scores, k=(k, self.head_dim))
        assert k is not None
        log_forget = self.log_forget(k.to(working_dtype(scores.dtype)))
        return (scores + sums_after_key(log_forget.unsqueeze(-2), table)).to(scores.dtype)

    def log_forget(
        self, k: Float[Tensor, "*batch kv_heads k_len head_dim"]
    ) -> Float[Tensor, "*batch heads k_len"]:
        """log f of every key, for every query head.

        Raises:
            ValueError: The heads of ``k`` do not divide those of the queries.
        """
        if self.heads % k.shape[-3]:
            raise ValueError(
                f"k has {k.shape[-3]} heads, which cannot serve {self.heads} query heads evenly. "
                f"Pass keys whose heads divide those of the queries."
            )
        weight = self.weight.unflatten(0, (k.shape[-3], self.heads // k.shape[-3]))
        gates = products(k, weight).mT.flatten(-3, -2)
        return F.logsigmoid(gates + self.bias.to(k.dtype).unsqueeze(-1))

    def extra_repr(self) -> str:
        """The arguments."""
        return f"heads={self.heads}, head_dim={self.head_dim}"
