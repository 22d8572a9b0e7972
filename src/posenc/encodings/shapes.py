"""The shapes of what encodings take, each under one name; those of tables stand where they are."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.positions import Integers, Positions

Dtype = torch.dtype | None
Device = torch.device | str | None
Scale = float | None

# Positions: any, of tokens, of points, of queries and keys; some encodings take integers alone.
Places = Int64[Tensor, "..."] | Positions
WholePlaces = Int64[Tensor, "..."] | Integers
Row = Int64[Tensor, "*batch seq"] | Positions
WholeRow = Int64[Tensor, "*batch seq"] | Integers
Points = Int64[Tensor, "*batch seq axes"] | Positions
WholePoints = Int64[Tensor, "*batch seq axes"] | Integers
QueryRow = Int64[Tensor, "*batch q_len"] | Positions
KeyRow = Int64[Tensor, "*batch k_len"] | Positions
WholeQueryRow = Int64[Tensor, "*batch q_len"] | Integers
WholeKeyRow = Int64[Tensor, "*batch k_len"] | Integers
QueryPixels = Int64[Tensor, "*batch q_len 2"] | Integers
KeyPixels = Int64[Tensor, "*batch k_len 2"] | Integers
Distance = Int64[Tensor, "*shape"] | Positions
WholeDistance = Int64[Tensor, "*shape"] | Integers

# Content: embeddings, heads in either layout, scores with the queries and keys they come from.
Embeddings = Float[Tensor, "*batch seq dim"]
Heads = Float[Tensor, "*batch _ _ head_dim"]
Scores = Float[Tensor, "*batch heads q_len k_len"]
Q = Float[Tensor, "*batch heads q_len head_dim"] | None
K = Float[Tensor, "*batch kv_heads k_len head_dim"] | None
Attended = Float[Tensor, "*batch heads q_len value_dim"]

# Tables of rotations: as they are made, and as they are read.
CosSin = Float[Tensor, "*batch seq 2 pairs"]
CosSinRows = Float[Tensor, "*rows 2 pairs"]

# Tables of pairs: a number for each head, one for all heads, q − k, or both positions.
Biases = Float[Tensor, "*rows heads q_len k_len"]
PairFactors = Float[Tensor, "*rows q_len k_len"]
Distances = Int64[Tensor, "*rows q_len k_len"]
Profile = Float[Tensor, "heads *shape"]
BothPositions = Int64[Tensor, "*rows 2 q_len k_len"]
