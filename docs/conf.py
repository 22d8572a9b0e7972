"""The site: ``make docs`` builds it into ``docs/_build/html``, without a network."""

import sys
from pathlib import Path

from posenc import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "posenc"
author = "The posenc authors"
project_copyright = "the posenc authors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "formulas",
    "notebooks",
    "reference",
]
exclude_patterns = [
    "notebooks",
    *("_build", "_extensions", "_templates"),
    *("make_gallery.py", "make_drawing.py", "make_lab_results.py"),
]

html_theme = "furo"
html_title = "posenc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = ["_templates"]
html_math_renderer = "mathml"
html_show_sourcelink = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Tutorials run at each build, so none shows what it does not do.
nb_execution_mode = "force"
nb_execution_timeout = 900  # on a busy machine; idle, the longest takes seconds
nb_execution_show_tb = True  # an error is a warning that tells its cell, and warnings fail
nb_merge_streams = True
nb_render_markdown_format = "myst"  # what a cell says has tables

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Reference", "notes_style"), ("Returns", "returns_style")]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
