"""Draws where positions enter a transformer: ``python docs/make_drawing.py``.

One SVG for a light and a dark ground, with a title and a description for whoever does not see it.
"""

from html import escape
from pathlib import Path

from posenc.plots.style import LOOKS, Look

DRAWING = Path(__file__).parent / "pictures" / "how-positions-flow.svg"
WIDTH, HEIGHT = 720, 560
TITLE = "Where positions enter a transformer"
TOLD = (
    "From top to bottom: token ids become embeddings; embeddings become queries, keys and values; "
    "keys and values are kept in a cache; queries and keys make scores; a mask hides keys, softmax "
    "makes weights, and weights mix values into the output. From the positions on the left a table "
    "leads into three places: it is added to the embeddings, it turns queries and keys, or it "
    "changes the scores. The mask asks the positions too: for order, padding, documents, windows."
)

SPINE = 240
"""Where the model begins; left of it stand the positions."""


def colors(one: Look) -> str:
    """The classes of one ground."""
    first, second, third = one.lines[:3]
    return "\n".join((
        f".ground {{ fill: {one.ground}; }}",
        f".box {{ fill: {one.ground}; stroke: {one.ink}; }}",
        f".quiet {{ fill: none; stroke: {one.faint}; }}",
        f"text {{ fill: {one.ink}; }}",
        f".flow {{ stroke: {one.ink}; }} .head {{ fill: {one.ink}; }}",
        *(
            f".{name} {{ stroke: {color}; }} .{name}-head {{ fill: {color}; stroke: none; }}"
            for name, color in (("one", first), ("two", second), ("three", third))
        ),
        f".disc text {{ fill: {one.ground}; }}",
    ))  # fmt: skip


STYLE = f"""text {{ font: 15px system-ui, -apple-system, "Segoe UI", sans-serif; }}
.small {{ font-size: 12.5px; }} .strong {{ font-weight: 600; }} .middle {{ text-anchor: middle; }}
.number {{ font-size: 19px; font-weight: 700; }}
.box, .quiet {{ stroke-width: 1.2; }} .flow {{ fill: none; stroke-width: 1.2; }}
.one, .two, .three {{ fill: none; stroke-width: 2.4; }}
{colors(LOOKS["light"])}
@media (prefers-color-scheme: dark) {{
{colors(LOOKS["dark"])}
}}"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, *lines: str, kind: str = "box") -> str:
    """A box with words in its middle: the first line in bold where a second explains it."""
    drawn = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" class="{kind}"/>']
    for index, words in enumerate(lines):
        below = y + height / 2 + 5 + 18 * (index - (len(lines) - 1) / 2)
        weight = "middle strong" if index == 0 else "middle small"
        drawn.append(text(x + width / 2, below, words, weight))
    return "\n".join(drawn)


def arrow(*points: tuple[float, float], kind: str = "flow", head: str = "head") -> str:
    """A line through some points, with a head at its end, downward or to the right."""
    (x, y), (before_x, _) = points[-1], points[-2]
    path = "M" + " L".join(f"{a} {b}" for a, b in points)
    tip = (x, y), (x - 9, y - 5), (x - 9, y + 5)
    if before_x == x:
        tip = (x, y), (x - 5, y - 9), (x + 5, y - 9)
    corners = " ".join(f"{a},{b}" for a, b in tip)
    return f'<path d="{path}" class="{kind}"/>\n<polygon points="{corners}" class="{head}"/>'


def place(number: int, name: str, y: float, end: float) -> str:
    """The way of a table from the positions into one of the three places."""
    disc = f'<g class="disc"><circle cx="205" cy="{y}" r="13" class="{name}-head"/>'
    label = text(205, y + 6.5, str(number), "middle number")
    return arrow((168, y), (end, y), kind=name, head=f"{name}-head") + f"\n{disc}{label}</g>"


def parts() -> list[str]:
    """The drawing, from its ground up."""
    queries, keys, values = SPINE + 70, SPINE + 210, SPINE + 380
    return [
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" class="ground"/>',
        # positions, at the left
        box(16, 70, 152, 406, kind="quiet"),
        text(92, 100, "Positions", "middle strong"),
        *(
            text(92, 124 + 19 * index, words, "middle small")
            for index, words in enumerate(
                (
                    "0, 1, 2, 3, … in a row",
                    "from a cache on",
                    "after padding",
                    "packed documents",
                    "grids of patches",
                    "shards of devices",
                    "seconds, pixels",
                )
            )
        ),
        text(92, 290, "say a table", "middle strong"),
        text(92, 310, "once, and exactly", "middle small"),
        # the model, from top to bottom
        box(SPINE + 140, 16, 180, 34, "Token ids"),
        arrow((SPINE + 230, 50), (SPINE + 230, 76)),
        box(SPINE + 30, 76, 420, 48, "Embeddings", "the table is added to them", kind="box one"),
        place(1, "one", 100, SPINE + 30),
        *(arrow((x, 124), (x, 154)) for x in (queries, keys, values)),
        box(queries - 50, 154, 100, 32, "Queries"),
        box(keys - 50, 154, 100, 32, "Keys"),
        box(values - 70, 154, 140, 32, "Values"),
        *(arrow((x, 186), (x, 212)) for x in (queries, keys)),
        box(SPINE + 15, 212, 250, 48, "Turned", "by the angles in the table", kind="box two"),
        place(2, "two", 236, SPINE + 15),
        arrow((keys, 260), (keys, 284)),
        arrow((values, 186), (values, 284)),
        box(keys - 60, 284, 300, 46, "Cache", "keys as they were turned, and values"),
        arrow((queries, 260), (queries, 354)),
        arrow((keys, 330), (keys, 354)),
        box(SPINE + 15, 354, 250, 48, "Scores", "q · k, changed by the table", kind="box three"),
        place(3, "three", 378, SPINE + 15),
        arrow((SPINE + 140, 402), (SPINE + 140, 428)),
        box(SPINE + 15, 428, 250, 48, "Mask", "order, padding, documents, window"),
        arrow((168, 452), (SPINE + 15, 452)),
        arrow((SPINE + 140, 476), (SPINE + 140, 504)),
        box(SPINE + 15, 504, 250, 40, "Softmax: weights"),
        arrow((values, 330), (values, 504)),
        arrow((SPINE + 265, 524), (values - 70, 524)),
        box(values - 70, 504, 140, 40, "Output"),
    ]


def drawing() -> str:
    """The whole file."""
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title told">',
        f'<title id="title">{TITLE}</title>',
        f'<desc id="told">{TOLD}</desc>',
        f"<style>\n{STYLE}\n</style>",
        *parts(),
        "</svg>\n",
    ))  # fmt: skip


if __name__ == "__main__":
    DRAWING.write_text(drawing())
