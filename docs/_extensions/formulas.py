"""Formulas as MathML, which browsers draw by themselves: no script and no font is loaded."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxTranslator


def inline(writer: SphinxTranslator, node) -> None:
    """A formula within a sentence."""
    writer.body.append(str(tex2mathml(node.astext(), as_block=False)))
    raise SkipNode


def displayed(writer: SphinxTranslator, node) -> None:
    """A formula of its own, which scrolls where a screen is narrow."""
    writer.body.append('<div class="formula">')
    writer.body.append(str(tex2mathml(node.astext(), as_block=True)))
    writer.body.append("</div>")
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """The renderer, to be chosen by ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
