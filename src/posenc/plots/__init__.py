"""Figures: numbers in, matplotlib ``Axes`` out; in a notebook two lines.

>>> from posenc import Sinusoidal, plots
>>> ax = plots.heatmap(Sinusoidal(64).table(range(50)))

Every function that draws takes three keywords besides its own: ``title``, a line above the picture;
``ax``, where to draw (a new figure by default); and ``theme``, ``"light"`` or ``"dark"``.
"""

from posenc.plots.bias import bias
from posenc.plots.clocks import directions, phasors, timestep_fan
from posenc.plots.curves import curves, distance_profile, error_curve, growth, rotary_score
from posenc.plots.grids import grid_channels, patch_similarity
from posenc.plots.heatmap import heatmap, shift_map, similarity_matrix
from posenc.plots.side_by_side import attention, binary_comparison, embedding_sum, norms
from posenc.plots.style import save
from posenc.plots.training import costs, length_curve, loss_curves, paired_differences
from posenc.plots.wavelengths import scaling, wavelengths

__all__ = [
    "attention",
    "bias",
    "binary_comparison",
    "costs",
    "curves",
    "directions",
    "distance_profile",
    "embedding_sum",
    "error_curve",
    "grid_channels",
    "growth",
    "heatmap",
    "length_curve",
    "loss_curves",
    "norms",
    "paired_differences",
    "patch_similarity",
    "phasors",
    "rotary_score",
    "save",
    "scaling",
    "shift_map",
    "similarity_matrix",
    "timestep_fan",
    "wavelengths",
]
