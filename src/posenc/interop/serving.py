"""Tables for engines that serve: for requests of unequal length, and in the form of each engine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor

from posenc.arguments import check_choice
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import ByLength, Geometric, YaRN, schedule_key
from posenc.frequencies.by_length import extended
from posenc.frequencies.schedule import Number
from posenc.guards import demand, graph_looks, may_look
from posenc.interop.configurations import Config
from posenc.interop.exports.subject import refuse, rotating_model
from posenc.positions import checked, consecutive

Form = Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"]


@dataclass(frozen=True)
class Request:
    """What one request keeps for its life."""

    longest: int  #: how many tokens it may have, prompt and answer together
    step: int  #: which of the schedules is its own
    #: equal for requests whose keys are encoded alike, on every machine: it belongs into the hash
    #: of every cached block
    key: str


class RequestTables:
    """The tables of all schedules that requests may have, one behind the other, to gather from.

    Rows of schedule s stand at offset_s + position. One gather serves a batch whatever its requests
    are, and no row depends on what else is in the batch. The frequencies of ``rotary`` are put
    aside for those of ``by_length``.

    Example:
        >>> by_length = ByLength.yarn(Geometric(64), trained_length=128)
        >>> tables = RequestTables(Rotary(64), by_length)
        >>> requests = [tables.request(100), tables.request(300)]
        >>> q, k = torch.randn(2, 8, 1, 64), torch.randn(2, 2, 1, 64)
        >>> q, k = tables.encode(q, k, requests, torch.tensor([[99], [250]]))
    """

    def __init__(
        self,
        rotary: Rotary,
        by_length: ByLength,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        self.by_length = by_length
        lengths, schedules = zip(*by_length.steps, strict=True)
        self.rotaries = tuple(map(rotary.with_frequencies, schedules))
        self.offsets = tuple(accumulate(lengths[:-1], initial=0))
        positions = consecutive(max(lengths), device=device)
        tables = [
            each.table(positions[:length], dtype=dtype)
            for each, length in zip(self.rotaries, lengths, strict=True)
        ]
        self.rows: Float[Tensor, "rows 2 pairs"] = torch.cat(tables)
        self._keys = tuple(map(rotation_key, self.rotaries))

    def request(self, longest: int) -> Request:
        """What a request of up to ``longest`` tokens keeps."""
        step = self.by_length.index(longest)
        return Request(longest, step, self._keys[step])

    def index(
        self, requests: Sequence[Request], positions: Int[Tensor, "batch seq"]
    ) -> Int64[Tensor, "batch seq"]:
        """Which rows the tokens take: the offset of each request's schedule, plus position."""
        positions = checked(positions)
        told = [(each.longest, self.offsets[each.step]) for each in requests]
        longest, offsets = torch.tensor(told, device=positions.device).T.unsqueeze(-1)
        inside = ((positions >= 0) & (positions < longest)).all()
        if graph_looks(positions):
            demand(inside, "A position is beyond what its request stated.")
        if may_look(positions) and not bool(inside):
            raise IndexError(f"A position is beyond the longest stated, {longest.tolist()}.")
        return positions + offsets

    def table(
        self, requests: Sequence[Request], positions: Int[Tensor, "batch seq"]
    ) -> Float[Tensor, "batch seq 2 pairs"]:
        """The rows of the tokens, each by the schedule of its request; one gather."""
        return self.rows[self.index(requests, positions)]

    def encode(
        self,
        q: Float[Tensor, "batch _ _ head_dim"],
        k: Float[Tensor, "batch _ _ head_dim"],
        requests: Sequence[Request],
        positions: Int[Tensor, "batch seq"],
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys of the same tokens, each rotated by the schedule of its request."""
        return self.rotaries[0].encode_both(q, k, self.rows, self.index(requests, positions))


def rotation_key(rotary: Rotary) -> str:
    """A hash of all that a rotation does to keys: frequencies, factors and layout of channels."""
    layout = f"{rotary.pairing} {rotary.rotated} {rotary.head_dim} {rotary.arithmetic}"
    return sha256(f"{schedule_key(rotary.frequencies)} {layout}".encode()).hexdigest()


def requests_from_config(
    config: Config,
    factors: Iterable[Number] = (2.0, 4.0),
    *,
    part: str | None = None,
) -> tuple[Rotary, ByLength]:
    """A model's rotation, and the schedules that its requests may have.

    Of a plain model, or one that YaRN extends: plain up to the trained length, and YaRN by each
    factor above it, with the model's own borders. Of LongRoPE: the short list up to the trained
    length, the long one up to ``max_position_embeddings``.

    Example:
        >>> qwen = {"model_type": "qwen3", "head_dim": 128, "rope_theta": 1e6,
        ...         "max_position_embeddings": 32768}
        >>> _, by_length = requests_from_config(qwen)
        >>> [length for length, _ in by_length.steps]
        [32768, 65536, 131072]
    """
    model = rotating_model(config, part=part)
    rotary = model.plain(model.alike())
    rope = model.rope_of(rotary)
    trained = rope.length("trained_length")
    if rope.kind == "longrope":
        lengths = trained, rope.length("longest")
        return rotary, ByLength(tuple((each, rope.rope_type.read(rope, each)) for each in lengths))
    schedule = rotary.frequencies
    if isinstance(schedule, Geometric):
        schedule = YaRN(schedule, 1, trained)
    if not isinstance(schedule, YaRN) or schedule.attention is not None:
        refuse(f"what {schedule!r} is at other factors does not follow from it")
    schedules = [replace(schedule, factor=factor) for factor in factors]
    return rotary, ByLength(extended(schedule.of, trained, schedules))


def engine_table(
    rotary: Rotary, length: int, form: Form, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """cos and sin at positions 0 … length − 1, correctly rounded, with the attention factor.

    Engines that load the same table multiply with the same bits, however each would compute it.

    Args:
        rotary: Frequencies, pairing and arithmetic.
        length: Number of positions.
        form: How they are kept:

            - ``cos_sin_cache``: vLLM and SGLang, ``[length, 2 · pairs]``: cosines, then sines.
            - ``cos_sin``: transformers, ``cos`` and ``sin`` ``[length, rotated_dim]``, a number
              for each channel.
            - ``complex``: torchtitan and Llama 4, ``freqs_cis`` ``[length, pairs]`` complex64.
            - ``halves``: flash-attention, ``cos`` and ``sin`` ``[length, pairs]``.
            - ``pairs``: torchtune, ``cache`` ``[length, pairs, 2]``.
        dtype: Of the values; complex ones are float32.

    Example:
        >>> made = engine_table(Rotary(8), 16, "cos_sin_cache")
        >>> made["cos_sin_cache"].shape
        torch.Size([16, 8])
    """
    check_choice(get_args(Form), form=form)
    if form == "complex" and dtype != torch.float32:
        raise ValueError(f"dtype is {dtype}; complex tables are of float32.")
    table = rotary.table(consecutive(length), dtype=dtype)
    cos, sin = (part.contiguous() for part in table.unbind(-2))
    if form == "cos_sin_cache":
        return {"cos_sin_cache": torch.cat((cos, sin), dim=-1)}
    if form == "complex":
        return {"freqs_cis": torch.complex(cos, sin)}
    if form == "pairs":
        return {"cache": torch.stack((cos, sin), dim=-1)}
    if form == "cos_sin" and rotary.pairing == "interleaved":
        cos, sin = (part.repeat_interleave(2, dim=-1) for part in (cos, sin))
    elif form == "cos_sin":
        cos, sin = (torch.cat((part, part), dim=-1) for part in (cos, sin))
    return {"cos": cos, "sin": sin}
