"""Encodings in a notebook: a small table, and the picture that matters, as SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite, log10
from typing import Any

import torch

from posenc.encodings.bias import RelativeBias
from posenc.frequencies import Schedule

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b")
FAR = 32
"""Biases are drawn up to this distance on both sides."""

MOST = 12
"""Heads of one picture; of more, some that are evenly apart."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 170, 64, 372, 22, 136


def in_html(told: Mapping[str, Any]) -> str:
    """A table of names with values or lists of encodings, and a picture of each encoding."""
    lists = {name: each if isinstance(each, list) else [each] for name, each in told.items()}
    rows = (
        f"<tr><th>{name}</th><td>{'<br>'.join(escape(str(e)) for e in held) or 'none'}</td></tr>"
        for name, held in lists.items()
    )
    pictures = (_picture(each) for held in lists.values() for each in held)
    return f"<table>{''.join(rows)}</table>{''.join(pictures)}"


@torch.no_grad()
def _picture(encoding: Any) -> str:
    """Wavelengths of a schedule, or the profile of a bias; empty for others."""
    name = type(encoding).__name__
    if isinstance(encoding, RelativeBias):
        distance = torch.arange(-FAR, FAR + 1)
        profile = encoding.profile(distance.to(next(encoding.parameters(), distance).device))
        step = -(-len(profile) // MOST)
        heads = {f"head {step * i}": row for i, row in enumerate(profile[::step].tolist())}
        label = f"{name}: bias (nats) over the distance query − key (positions)"
        return _svg(label, distance.tolist(), heads)
    schedule = getattr(encoding, "frequencies", None)
    if convention := getattr(encoding, "convention", None):
        schedule = convention.waveform(encoding.dim, encoding.base).sines
    if not isinstance(schedule, Schedule):
        return ""
    lengths = [log10(abs(each)) for each in schedule.wavelengths() if isfinite(each)]
    label = f"{name}: wavelength (positions per turn) of each pair, logarithmic"
    return _svg(label, range(len(lengths)), {"wavelength": lengths}, is_log=True)


def _svg(
    label: str, xs: Sequence[int], lines: Mapping[str, Sequence[float]], is_log: bool = False
) -> str:
    """Lines over ``xs``, in a frame that tells the ends of both axes."""
    known = [y for line in lines.values() for y in line if isfinite(y)]
    if len(xs) < 2 or not known:
        return ""
    low, high = min(known), max(known)

    def point(x: float, y: float) -> str:
        across, down = (x - xs[0]) / (xs[-1] - xs[0]), (high - y) / ((high - low) or 1.0)
        return f"{LEFT + across * (RIGHT - LEFT):.1f},{TOP + down * (BOTTOM - TOP):.1f}"

    drawn = [f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" stroke="gray" fill="none"/>']
    for index, (name, line) in enumerate(lines.items()):
        points = " ".join(point(x, y) for x, y in zip(xs, line, strict=True) if isfinite(y))
        color = f'stroke="{COLORS[index % len(COLORS)]}" fill="none"'
        drawn.append(f'<polyline points="{points}" {color}><title>{name}</title></polyline>')
    ends = [10**end if is_log else end for end in (high, low)]
    told = [f"{end:,.0f}" if abs(end) >= 1e4 else f"{end:.4g}" for end in ends]
    for x, y, anchor, text in (
        (WIDTH / 2, 12, "middle", label),
        (LEFT - 5, TOP + 8, "end", told[0]),
        (LEFT - 5, BOTTOM, "end", told[1]),
        (LEFT, BOTTOM + 14, "start", xs[0]),
        (RIGHT, BOTTOM + 14, "end", xs[-1]),
    ):
        place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
        drawn.append(f'<text {place} fill="currentColor">{text}</text>')
    return f'<svg width="{WIDTH}" height="{HEIGHT}" font-size="11">{"".join(drawn)}</svg>'
