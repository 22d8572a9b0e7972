"""Draws every picture of the gallery: ``python docs/make_gallery.py``.

Each function is one picture and shows how it is made; ``docs/gallery.md`` shows the same calls.
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes

import posenc.plots as plots
from posenc import (
    ALiBi,
    AxialRotary,
    AxialSinusoidal,
    DirectedRotary,
    Positional,
    Rotary,
    Sinusoidal,
    T5Bias,
)
from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.inspection.frequencies import frequency_vectors
from posenc.inspection.similarity import patch_similarity as likeness
from posenc.lab.statistics import bootstrap
from posenc.plots.style import Theme
from posenc.positions import Coordinates, consecutive, grid, masked_grid
from posenc.transformer import Encoder

PICTURES = Path(__file__).parent / "pictures"
RANDOM = "drawn at random: the form alone, no result"
SENTENCE = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "."]


def heatmap_10x4(theme: Theme) -> Axes:
    """Ten positions, four dimensions, n = 100."""
    return plots.heatmap(Sinusoidal(4, 100.0).table(consecutive(10)), theme=theme)


def heatmap_50x128(theme: Theme) -> Axes:
    """Fifty positions of a small model."""
    return plots.heatmap(Sinusoidal(128).table(consecutive(50)), theme=theme)


def heatmap_1000x512(theme: Theme) -> Axes:
    """A thousand positions of the first transformer, one pixel a number."""
    return plots.heatmap(Sinusoidal(512).table(consecutive(1000)), theme=theme)


def curves(theme: Theme) -> Axes:
    """Single dimensions over the position."""
    return plots.curves(
        Sinusoidal(20).table(consecutive(100)), dimensions=[4, 5, 6, 7], theme=theme
    )


def wavelengths(theme: Theme) -> Axes:
    """Wavelengths of two bases."""
    schedules = {f"base {base:,}": Geometric(128, base).wavelengths() for base in (10_000, 500_000)}
    return plots.wavelengths(schedules, trained_length=8192, theme=theme)


def binary(theme: Theme) -> Axes:
    """Binary digits and waves: both count."""
    sines = Sinusoidal(10, base=40.0).table(consecutive(32))[:, ::2]
    return plots.binary_comparison(sines, theme=theme)


def directions(theme: Theme) -> Axes:
    """Where the pairs of three rotary encodings of images look."""
    encodings = {
        "axial": AxialRotary(64),
        "spiral": DirectedRotary.spiral(64),
        "golden gate": DirectedRotary.golden_gate(64, slowest=0.01, fastest=1.0),
    }
    vectors = {
        name: frequency_vectors(encoding).view(-1, 2) for name, encoding in encodings.items()
    }
    return plots.directions(vectors, theme=theme)


def grid_channels(theme: Theme) -> Axes:
    """Channels of MAE's encoding over its grid of patches."""
    table = AxialSinusoidal(64).table(grid(14, 14))
    return plots.grid_channels(table, (14, 14), theme=theme)


def patch_similarity(theme: Theme) -> Axes:
    """One patch against all others, by four encodings of images."""
    points, size, patch = grid(14, 14), (14, 14), (4, 9)
    golden_gate = DirectedRotary.golden_gate(64, slowest=0.01, fastest=1.0)
    tables = {
        "MAE, d = 768": AxialSinusoidal(768).table(points),
        "DETR, d = 256": AxialSinusoidal(256, "detr").table(masked_grid(torch.ones(size).bool())),
        "axial rotary, d = 64": AxialRotary(64).table(points),
        "golden gate, d = 64": golden_gate.table(points),
    }
    alike = {name: likeness(t, size, patch) for name, t in tables.items()}
    return plots.patch_similarity(alike, patch, theme=theme)


def phasors(theme: Theme) -> Axes:
    """The pairs at position 10 as clocks."""
    cos, sin = Rotary(16).table(torch.tensor(10)).unbind(0)
    return plots.phasors(cos, sin, position=10, theme=theme)


def timestep_fan(theme: Theme) -> Axes:
    """A diffusion run whose steps crowd toward the clean end: fractional timesteps."""
    run = Coordinates.rounded(1000 * torch.linspace(0, 1, 33).double() ** 2, Fraction(1, 100))
    cos, sin = Sinusoidal(256, convention="timestep").table(run).chunk(2, dim=-1)
    return plots.timestep_fan(cos, sin, run.floats(), theme=theme)


def similarity(theme: Theme) -> Axes:
    """Dot products of all pairs of positions."""
    rows = Sinusoidal(128).table(consecutive(100))
    return plots.similarity_matrix(rows @ rows.mT, theme=theme)


def profile(theme: Theme) -> Axes:
    """Dot products over the offset, for two widths."""
    by_width = {}
    for dim in (32, 128):
        rows = Sinusoidal(dim).table(consecutive(400), dtype=torch.float64)
        by_width[f"d = {dim}, over d/2"] = (rows @ rows[0]) / (dim / 2)
    return plots.distance_profile(by_width, quantity="PE(p) · PE(p + offset) / (d/2)", theme=theme)


def shift(theme: Theme) -> Axes:
    """The map that moves every row ten positions on."""
    dim, offset = 16, 10
    cos, sin = Rotary(dim).table(torch.tensor(offset), dtype=torch.float64).unbind(0)
    blocks = [torch.tensor([[c, s], [-s, c]]) for c, s in zip(cos, sin, strict=True)]
    matrix = torch.block_diag(*blocks).double()
    rows = Sinusoidal(dim).table(consecutive(210), dtype=torch.float64)
    residual = (rows[:200] @ matrix.mT - rows[offset:]).abs().max().item()
    return plots.shift_map(matrix, offset=offset, residual=residual, theme=theme)


def embeddings() -> tuple[torch.Tensor, torch.Tensor]:
    """Seeded random embeddings of the sentence (nothing learned), and its encoding."""
    torch.manual_seed(0)
    return torch.randn(len(SENTENCE), 14) * 0.5, Sinusoidal(14).table(consecutive(len(SENTENCE)))


def embedding_sum(theme: Theme) -> Axes:
    """Embedding + encoding = what the encoder sees."""
    return plots.embedding_sum(*embeddings(), tokens=SENTENCE, theme=theme)


def norms(theme: Theme) -> Axes:
    """How long both are."""
    embedding, encoding = embeddings()
    return plots.norms(
        (embedding * 14**0.5).norm(dim=1), encoding.norm(dim=1), tokens=SENTENCE, theme=theme
    )


def rotary_score(theme: Theme) -> Axes:
    """What rotary attention sees of two equal vectors of ones, for two bases."""
    ones, scores = torch.ones(1, 1, 2000, 64), {}
    for base in (10_000.0, 500_000.0):
        rotary = Rotary(Geometric(64, base))
        keys = rotary.encode_keys(ones, rotary.table(consecutive(2000)))[0, 0]
        scores[f"base {base:,.0f}"] = keys @ keys[0] / 64
    return plots.rotary_score(scores, theme=theme)


def alibi(theme: Theme) -> Axes:
    """ALiBi of eight heads."""
    distance = torch.arange(-20, 101)
    return plots.bias(ALiBi(8).profile(distance), distance, theme=theme)


def t5(theme: Theme) -> Axes:
    """The buckets of T5, its weights drawn at random."""
    torch.manual_seed(3)
    distance = torch.arange(-150, 151)
    return plots.bias(T5Bias(3, std=1.0).profile(distance).detach(), distance, theme=theme)


def scaling(theme: Theme) -> Axes:
    """Four ways to stretch a context of 8,192 eightfold."""
    plain_schedule = Geometric(128, 500_000.0)
    scaled = {
        "linear": Linear(plain_schedule, 8.0),
        "NTK": NTK(plain_schedule, 8.0),
        "YaRN": YaRN(plain_schedule, 8.0, 8192),
        "Llama 3": Llama3(plain_schedule, 8.0, trained_length=8192),
    }
    return plots.scaling(
        plain_schedule.wavelengths(),
        {name: schedule.wavelengths() for name, schedule in scaled.items()},
        trained_length=8192,
        factor=8.0,
        theme=theme,
    )


def attention(theme: Theme) -> Axes:
    """One head of a random encoder, without and with positions: the two "cat" part."""
    words = ["your", "cat", "is", "a", "lovely", "cat"]
    torch.manual_seed(1)
    vectors = {word: torch.randn(16) for word in words}
    x = torch.stack([vectors[word] for word in words])[None] * 1.2
    torch.manual_seed(0)
    encoder = Encoder(16, 2, 1, positional=Positional(tokens=Sinusoidal(16))).eval()
    block = encoder.blocks[0].attention
    with torch.no_grad():
        off = block.stages(x).weights[0, 0]
        on = block.stages(Sinusoidal(16)(x)).weights[0, 0]
    return plots.attention(off, on, tokens=words, theme=theme)


def error_curve(theme: Theme) -> Axes:
    """How far tables in float32 are off: the usual arithmetic, and ours."""
    errors = {}
    for name, told in {
        "position × frequency": {"arithmetic": "float32"},
        "exact phases": {},
    }.items():
        errors[name] = {}
        for p in (10**power for power in range(1, 9)):
            rows = Sinusoidal(128, **told).table([p]).double()
            meant = Sinusoidal(128).table([p], dtype=torch.float64)
            errors[name][p] = (rows - meant).abs().max().item()
    return plots.error_curve(errors, theme=theme)


def drawn_at_random() -> dict[str, dict[float, list[float]]]:
    """Scores as the lab has them, by encoding and length, five seeds each; nothing was trained."""
    torch.manual_seed(5)
    means = {"A": (0.95, 0.9, 0.8, 0.7), "B": (0.93, 0.8, 0.55, 0.4), "C": (0.9, 0.5, 0.3, 0.27)}
    return {
        name: {
            2.0**octave: (mean + 0.03 * torch.randn(5)).clamp(max=1.0).tolist()
            for octave, mean in enumerate(by_length)
        }
        for name, by_length in means.items()
    }


def interval(seeds: list[float]) -> tuple[float, float, float]:
    """The mean and its 95 % bootstrap interval."""
    found = bootstrap(seeds)
    return found.value, found.low, found.high


def length_curve(theme: Theme) -> Axes:
    """Scores over the length of rows."""
    scores = drawn_at_random()
    middles = {
        name: {ratio: interval(seeds) for ratio, seeds in by_ratio.items()}
        for name, by_ratio in scores.items()
    }
    return plots.length_curve(scores, middles, chance=0.25, title=RANDOM, theme=theme)


def paired_differences(theme: Theme) -> Axes:
    """Two encodings against a third, seed by seed."""
    scores = drawn_at_random()
    apart = {
        f"{name} − C, {ratio:g} × as long": [
            a - c for a, c in zip(scores[name][ratio], scores["C"][ratio], strict=True)
        ]
        for name in ("A", "B")
        for ratio in (1.0, 8.0)
    }
    intervals = {name: interval(seeds) for name, seeds in apart.items()}
    return plots.paired_differences(
        apart, intervals, label="difference of accuracy", title=RANDOM, theme=theme
    )


def loss_curves(theme: Theme) -> Axes:
    """Losses of training, three seeds each."""
    torch.manual_seed(6)
    steps = torch.arange(10, 610, 10)
    curves = {}
    for name, rate in (("A", 90.0), ("B", 160.0)):
        falling = 0.3 + 2.5 * (-steps / rate).exp()
        seeds = [falling * (0.08 * torch.randn(len(steps))).exp() for _ in range(3)]
        curves[name] = [torch.stack((steps, each), dim=1).tolist() for each in seeds]
    return plots.loss_curves(curves, title=RANDOM, theme=theme)


def costs(theme: Theme) -> Axes:
    """Time of a step, run by run."""
    torch.manual_seed(7)
    times = {name: (mean + torch.rand(5)).tolist() for name, mean in (("A", 9), ("B", 11))}
    return plots.costs(times, {"A": 0, "B": 64}, title=RANDOM, theme=theme)


def growth(theme: Theme) -> Axes:
    """Bytes of a bias of eight heads: its matrix, and a number a distance."""
    lengths = [2**power for power in range(9, 16)]
    held = {
        "queries × keys": {length: 4 * 8 * length**2 for length in lengths},
        "a number a distance": {length: 4 * 8 * (2 * length - 1) for length in lengths},
    }
    return plots.growth(held, xlabel="tokens", ylabel="bias of 8 heads (bytes)", theme=theme)


GALLERY: dict[str, Callable[[Theme], Axes]] = {
    "heatmap-10x4": heatmap_10x4,
    "heatmap-50x128": heatmap_50x128,
    "heatmap-1000x512": heatmap_1000x512,
    "curves": curves,
    "wavelengths": wavelengths,
    "binary": binary,
    "directions": directions,
    "grid-channels": grid_channels,
    "patch-similarity": patch_similarity,
    "phasors": phasors,
    "timestep-fan": timestep_fan,
    "similarity": similarity,
    "profile": profile,
    "shift": shift,
    "embedding-sum": embedding_sum,
    "norms": norms,
    "rotary-score": rotary_score,
    "alibi": alibi,
    "t5": t5,
    "scaling": scaling,
    "attention": attention,
    "error-curve": error_curve,
    "length-curve": length_curve,
    "paired-differences": paired_differences,
    "loss-curves": loss_curves,
    "costs": costs,
    "growth": growth,
}


def main(folder: Path = PICTURES, theme: Theme = "light") -> None:
    """Writes each picture as PNG: small, and seen everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in GALLERY.items():
        axes = draw(theme)
        path = folder / f"{name}.png"
        with path.open("wb") as file:
            plots.save(axes.figure, file, "png")  # type: ignore[arg-type]
        plt.close(axes.figure)  # type: ignore[arg-type]
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:2]))
