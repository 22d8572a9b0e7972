"""Biases: encodings that add a number to each score, their sums, and the bias of some heads."""

import inspect
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from types import CellType, FunctionType
from typing import ClassVar

import torch
from torch import Tensor, nn

from posenc.encodings.base import ScoreEncoding, check_pairs
from posenc.encodings.shapes import (
    Biases,
    Distance,
    Dtype,
    K,
    KeyRow,
    Places,
    Profile,
    Q,
    QueryRow,
    Scale,
    Scores,
    WholeDistance,
)
from posenc.positions import checked, checked_distances


class ScoreBias(ScoreEncoding):
    """A score encoding whose table is added: ``[*batch, heads, q_len, k_len]``.

    Attention adds the table and does not call ``encode``; what does more is a ``ScoreEncoding``.
    ``bias + bias`` adds both, and ``bias[2:4]`` is the bias of two heads. Both share their
    parameters with the biases they are made of.

    Attributes:
        head_axes: The axis along which each parameter counts heads. ``None``: the numbers of one
            head depend on parameters of others.
        heads_of: The bias some of whose heads this one is.

    Example:
        >>> from posenc import ALiBi, T5Bias
        >>> (ALiBi(8) + T5Bias(8))[2:4].table(range(3), range(5)).shape
        torch.Size([2, 3, 5])
    """

    is_pairwise = True
    head_axes: ClassVar[Mapping[str, int] | None] = None
    heads_of: "ScoreBias | None" = None

    def __add__(self, other: "ScoreBias") -> "BiasSum":
        return BiasSum([self, other]) if isinstance(other, ScoreBias) else NotImplemented

    def __radd__(self, other: int) -> "ScoreBias":  # ``sum(biases)`` begins with 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __getitem__(self, heads: int | slice) -> "BiasHeads":
        return BiasHeads(self, chosen_heads(range(self.heads), heads))

    def take_heads(self, heads: slice) -> None:
        """Forget all other heads; ``bias_apart`` calls it on a copy."""
        for name, axis in (self.head_axes or {}).items():
            whole = getattr(self, name)
            if whole is not None:
                part = whole.detach().transpose(0, axis)[heads].transpose(0, axis).clone()
                setattr(self, name, nn.Parameter(part, requires_grad=whole.requires_grad))
        self.heads = len(range(self.heads)[heads])

    def encode(
        self, scores: Scores, table: Biases, *, q: Q = None, k: K = None, scale: Scale = None
    ) -> Scores:
        """``scores + table``, added in float32 at least and rounded once."""
        check_pairs(type(self).__name__, scores, table)
        return (scores + table).to(scores.dtype)


class RelativeBias(ScoreBias):
    """A bias of ``distance = q_position − k_position`` alone; a subclass defines ``profile``.

    Attention reads the profile where rows are long and the table where they are short.
    """

    is_relative = has_profile = True

    @abstractmethod
    def profile(self, distance: WholeDistance, *, dtype: Dtype = None) -> Profile:
        """The bias of every head at each distance."""

    def table(self, q_positions: QueryRow, k_positions: KeyRow, *, dtype: Dtype = None) -> Biases:
        """``profile`` at every pair of positions."""
        distance = checked_distances(q_positions, k_positions, reals=self.takes_reals)
        return self.profile(distance, dtype=dtype).movedim(0, -3)  # type: ignore[arg-type]

    @staticmethod
    def of(function: Callable[[Tensor], Tensor], heads: int) -> "FunctionBias":
        """The bias that a function of distances gives, as a ``score_mod`` of FlexAttention does.

        Args:
            function: From whole distances ``[n]``, query less key, to their biases ``[heads, n]``,
                or ``[n]`` for all heads. Parameters and modules that it reads become those of the
                bias, under the names that they have in the function.
            heads: Number of query heads.

        Example:
            >>> import torch
            >>> slope = torch.nn.Parameter(torch.tensor([[0.5], [0.25]]))
            >>> bias = RelativeBias.of(lambda distance: slope * -distance.abs(), heads=2)
            >>> bias.table([3], range(4)).tolist()
            [[[-1.5, -1.0, -0.5, 0.0]], [[-0.75, -0.5, -0.25, 0.0]]]
            >>> [name for name, _ in bias.named_parameters()]
            ['held.slope']
        """
        return FunctionBias(function, heads)


class FunctionBias(RelativeBias):
    """The bias of ``RelativeBias.of``."""

    def __init__(self, function: Callable[[Tensor], Tensor], heads: int):
        super().__init__()
        self.function, self.heads, self.held = function, heads, nn.Module()
        if inspect.isfunction(function):
            for name, value in _names_read(function).items():
                if isinstance(value, nn.Parameter | nn.Module):
                    setattr(self.held, name, value)

    def profile(self, distance: WholeDistance, *, dtype: Dtype = None) -> Profile:
        distance = checked(distance)
        made, n = self.function(distance.flatten()), distance.numel()
        if getattr(made, "shape", None) not in ((n,), (1, n), (self.heads, n)):
            got = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
            raise ValueError(f"The function gave {got} for {n} distances, and not [heads, {n}].")
        made = made.to(dtype or torch.float32)
        return made.expand(self.heads, -1).unflatten(-1, distance.shape)

    def __deepcopy__(self, memo: dict[int, object]) -> "FunctionBias":
        """A copy whose function reads the parameters of the copy."""
        held, function = deepcopy((self.held, self.function), memo)
        if inspect.isfunction(function):
            function = _reading(function, {**held._parameters, **held._modules})
        return FunctionBias(function, self.heads).train(self.training)

    def extra_repr(self) -> str:
        return f"{getattr(self.function, '__name__', self.function)}, heads={self.heads}"


def _names_read(function: Callable) -> dict[str, object]:
    """What a function reads from around it."""
    read = inspect.getclosurevars(function)
    return {**read.globals, **read.nonlocals}


def _reading(function: FunctionType, values: Mapping[str, object]) -> FunctionType:
    """The function, with other values of names that it reads from around it."""
    code, cells = function.__code__, function.__closure__ or ()
    closure = [
        CellType(values[name]) if name in values else cell
        for name, cell in zip(code.co_freevars, cells, strict=True)
    ]
    names = {**function.__globals__, **values}
    return FunctionType(code, names, function.__name__, function.__defaults__, tuple(closure))


def take_claims(holder: ScoreEncoding, *parts: ScoreBias) -> None:
    """Let ``holder`` claim what it claims as a class and all the biases that it holds claim."""
    for name in ("is_relative", "is_pairwise", "takes_reals", "has_profile"):
        setattr(holder, name, all(getattr(each, name) for each in (holder, *parts)))
    for name in ("reads_neighbors", "reads_later"):
        setattr(holder, name, any(getattr(each, name) for each in (holder, *parts)))


class BiasSum(ScoreBias):
    """Biases that are added, as ``bias + bias``; it has a profile where all of them have one."""

    is_relative = takes_reals = has_profile = True

    def __init__(self, biases: Iterable[ScoreBias]):
        super().__init__()
        self.parts = nn.ModuleList()
        for bias in biases:
            self.parts.extend(bias.parts if isinstance(bias, BiasSum) else [bias])
        heads = [part.heads for part in self.parts]
        if len(set(heads)) != 1:
            raise ValueError(f"Biases of {' and '.join(map(str, heads))} heads cannot be added.")
        self.heads = heads[0]  # type: ignore[assignment]
        self.training = self.parts.training = any(part.training for part in self.parts)
        take_claims(self, *self.parts)  # type: ignore[arg-type]

    def table(self, q_positions: Places, k_positions: Places, *, dtype: Dtype = None) -> Biases:
        first, *others = (part.table(q_positions, k_positions, dtype=dtype) for part in self.parts)  # type: ignore[operator]
        return sum(others, start=first)

    def profile(self, distance: Distance, *, dtype: Dtype = None) -> Profile:
        first, *others = (part.profile(distance, dtype=dtype) for part in self.parts)  # type: ignore[operator]
        return sum(others, start=first)


class BiasHeads(ScoreBias):
    """Some heads of a bias, as ``bias[2:4]``; it has a profile where the whole has one."""

    is_relative = takes_reals = has_profile = True

    def __init__(self, of: ScoreBias, chosen: range):
        super().__init__()
        self.of, self.chosen, self.heads, self.training = of, chosen, len(chosen), of.training
        take_claims(self, of)

    def __getitem__(self, heads: int | slice) -> "BiasHeads":
        return BiasHeads(self.of, chosen_heads(self.chosen, heads))

    @property
    def heads_of(self) -> ScoreBias:  # type: ignore[override]
        return self.of

    @property
    def slopes(self) -> tuple[float, ...]:
        return self.of.slopes[self._rows]  # type: ignore[index]

    @property
    def _rows(self) -> slice:
        return slice(self.chosen.start, self.chosen.stop, self.chosen.step)

    def table(self, q_positions: Places, k_positions: Places, *, dtype: Dtype = None) -> Biases:
        table = self.of.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        return table[..., self._rows, :, :]

    def profile(self, distance: Distance, *, dtype: Dtype = None) -> Profile:
        return self.of.profile(distance, dtype=dtype)[self._rows]  # type: ignore[operator]

    def extra_repr(self) -> str:
        return ", ".join(map(str, self.chosen))


def chosen_heads(every: range, index: int | slice) -> range:
    """The heads that ``bias[index]`` takes of ``every`` head: one or more, in their order."""
    if isinstance(index, slice):
        chosen = every[index]
        if chosen and chosen.step > 0:
            return chosen
        raise IndexError(f"bias[{index}] takes none of {len(every)} heads in their order.")
    index = operator.index(index)
    if not -len(every) <= index < len(every):
        raise IndexError(f"bias[{index}] was asked of {len(every)} heads; they count from 0.")
    return every[index:][:1]


def bias_apart(bias: ScoreBias, heads: slice) -> ScoreBias | None:
    """The bias of some heads, with parameters cut from those of ``bias``, where heads are apart."""
    axes = vars(type(bias)).get("head_axes")
    if axes is None or {name for name, _ in bias.named_parameters()} - set(axes):
        return None
    part = deepcopy(bias)
    part.take_heads(heads)
    return part
