"""What a redraw costs, counted: sines taken, pixels painted, strokes drawn.

A clock would tell about the machine as much as about the page. Two counts are kept apart: the frame
in which the reader's gesture is answered, and all that follows until the page rests, heavy parts
included.
"""

import pytest
from tests.explorer.conftest import SECTIONS

from posenc.explorer import page as explorer_page

pytestmark = pytest.mark.slow("the page in a browser")

COUNTING = """
(() => {
  const counts = { sines: 0, pixels: 0, strokes: 0 };
  globalThis.counts = counts;
  for (const name of ["sin", "cos", "pow", "exp"]) {
    const real = Math[name];
    Math[name] = (...given) => (counts.sines++, real(...given));
  }
  const context = CanvasRenderingContext2D.prototype;
  for (const name of ["stroke", "fill", "fillText", "fillRect", "drawImage"]) {
    const real = context[name];
    context[name] = function (...given) {
      counts.strokes++;
      return real.apply(this, given);
    };
  }
  const put = context.putImageData;
  context.putImageData = function (image, ...rest) {
    counts.pixels += image.width * image.height;
    return put.call(this, image, ...rest);
  };
})();
"""

GESTURE = """
async ([section, gesture]) => {
  const settled = async () => {
    while (document.documentElement.dataset.settled !== "true")
      await new Promise((then) => setTimeout(then, 20));
  };
  const once = () => new Promise((then) => requestAnimationFrame(then));
  // A slow machine takes so long over a frame that what waits for a pause would begin within it.
  const later = globalThis.setTimeout;
  const held = [];
  document.getElementById(section).scrollIntoView({ behavior: "instant" });
  await new Promise((then) => setTimeout(then, 60));
  await settled();
  globalThis.setTimeout = (...given) => -held.push(given);
  for (const name in counts) counts[name] = 0;
  if (gesture === "cursor") {
    const stage = document.querySelector('[data-name="matrix"]');
    for (const key of ["ArrowUp", "ArrowRight", "["])
      stage.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  } else {
    const [field, value] = gesture === "base" ? ["base", null] : gesture.split("=");
    const box = document.getElementById(field);
    box.value = value ?? 9000 + Math.round(performance.now() % 900);
    box.dispatchEvent(new Event("input"));
  }
  await once().then(once);
  const frame = { ...counts };
  globalThis.setTimeout = later;
  for (const given of held) later(...given);
  await settled();
  return [frame, { ...counts }];
}
"""

DEFAULT = "position=40"
LIMITS = "length=4096&dim=1024&position=4000&dimension=900"

# What a gesture of the first half does not touch, where a section begins: the decoder's mask stays.
IDLE = {
    "cursor": ("long", "biases", "decoder", "grid", "exercises"),
    "base": ("biases", "decoder", "grid", "exercises"),
}

# The most that a gesture may cost: in the frame that answers it, and until the page rests. Without
# the tricks of the page (sums of angles, kept windows, parts that wait) these would be many times
# as much; a table at the limits has 4096 x 1024 numbers.
MOST = {
    (DEFAULT, "cursor"): (
        {"sines": 9_000, "pixels": 9_000, "strokes": 1_200},
        {"sines": 60_000, "pixels": 13_000, "strokes": 3_000},
    ),
    (DEFAULT, "base"): (
        {"sines": 24_000, "pixels": 9_000, "strokes": 1_200},
        {"sines": 130_000, "pixels": 13_000, "strokes": 3_700},
    ),
    (LIMITS, "cursor"): (
        {"sines": 90_000, "pixels": 380_000, "strokes": 2_400},
        {"sines": 1_100_000, "pixels": 480_000, "strokes": 4_700},
    ),
    (LIMITS, "base"): (
        {"sines": 180_000, "pixels": 380_000, "strokes": 2_400},
        {"sines": 1_500_000, "pixels": 480_000, "strokes": 4_700},
    ),
}


def too_much(page, link: str, gesture: str, sections=SECTIONS) -> list[str]:
    """What a gesture costs beyond its bounds, in words."""
    found = []
    for section in sections:
        counts = page.evaluate(GESTURE, [section, gesture])
        for when, spent, most in zip(("frame", "all"), counts, MOST[link, gesture], strict=True):
            assert spent["strokes"] > 20, f"nothing was drawn in {section}"
            found += [
                f"{section}: {spent[name]} {name} in the {when}, at most {most[name]}"
                for name in most
                if spent[name] > most[name]
            ]
    return found


@pytest.mark.parametrize("gesture", ["cursor", "base"])
@pytest.mark.parametrize("link", [DEFAULT, LIMITS], ids=["default", "limits"])
def test_a_gesture_costs_no_more_than_what_is_seen(opened, link, gesture):
    found = opened(link, before=lambda page: page.add_init_script(COUNTING))
    drawn = [each for each in SECTIONS if each not in IDLE[gesture]]
    sections = drawn if link == DEFAULT else ("matrix", "curves", "similarity", "shift")
    assert too_much(found.page, link, gesture, sections) == []


# Sections of the second half have fields of their own: what one costs, at its most.
OWN = {
    ("slowly", "turnedPairs=7"): (8_000, 0, 400),
    ("long", "long-factor=64"): (270_000, 0, 520),
    ("biases", "bias-keys=4000"): (26_000, 0, 120),
    ("decoder", "pads=6"): (9_000, 0, 1_300),
    ("grid", "gridSize=24"): (50_000, 1_000, 120),
}


SLOW = pytest.mark.slow("a page for each; the section that costs most stands for them")


@pytest.mark.parametrize(
    ("section", "gesture"),
    [pytest.param(*own, marks=() if own[0] == "long" else SLOW) for own in OWN],
)
def test_a_field_of_the_second_half_costs_no_more_than_its_section(opened, section, gesture):
    found = opened("dim=1024", before=lambda page: page.add_init_script(COUNTING))
    _, spent = found.page.evaluate(GESTURE, [section, gesture])
    assert spent["strokes"] > 20, "nothing was drawn"
    most = dict(zip(("sines", "pixels", "strokes"), OWN[section, gesture], strict=True))
    assert {name: n for name, n in spent.items() if n > most[name]} == {}


# Each spoils one of the tricks: (what, by what, link, gesture, where it is seen).
FAULTS = {
    "windows are not kept": (
        "if (asked === key) return kept;", "", DEFAULT, "cursor", "matrix",
    ),
    "heavy parts do not wait": (
        "part.inSight && !part.heavy", "part.inSight", LIMITS, "cursor", "shift",
    ),
    "every angle by itself": ("const FINE = 64;", "const FINE = 1;", LIMITS, "base", "matrix"),
    "everything is drawn, seen or not": (
        "part.dirty && part.inSight", "part.dirty", DEFAULT, "base", "encoder",
    ),
    "all is drawn for any change": (
        "if (!part.needs ||", "if (true ||", LIMITS, "cursor", "matrix",
    ),
}  # fmt: skip


@pytest.mark.slow("the page spoiled on purpose")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_counted(browser, tmp_path, fault):
    what, by, link, gesture, section = FAULTS[fault]
    text = explorer_page()
    assert text.count(what) >= 1
    file = tmp_path / "page.html"
    file.write_text(text.replace(what, by), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.add_init_script(COUNTING)
    page.goto(f"{file.as_uri()}#{link}")
    page.wait_for_selector("html[data-settled=true]", state="attached")
    found = too_much(page, link, gesture, [section])
    context.close()
    assert found, fault
